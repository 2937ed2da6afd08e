package whatif

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/operator"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/plan"
)

// pause is how long events are gathered before a pass.
const pause = 50 * time.Millisecond

// spread is the record of a spread by its name. It is the planner of the passes.
type spread struct {
	*Spreads

	key    types.NamespacedName
	run    *operator.Operator
	state  State
	uid    types.UID // of the object that the status describes
	exists bool
	stale  bool      // something has happened since the status was computed
	next   time.Time // when the next pass begins, zero for none
}

// of returns the record of a spread.
func (s *Spreads) of(key types.NamespacedName) *spread {
	one := s.known[key]
	if one == nil {
		one = &spread{
			Spreads: s,
			key:     key,
			state:   State{Spread: key},
		}
		one.run = operator.New(s.world, one, operator.Settings{Actor: Actor})
		s.known[key] = one
	}
	return one
}

// wake has a pass follow soon.
func (o *spread) wake() {
	o.stale = true
	o.passAt(o.world.Now().Add(pause))
}

// passAt has a pass begin at a time at the latest.
func (o *spread) passAt(at time.Time) {
	if !o.next.IsZero() && !at.Before(o.next) {
		return
	}
	o.next = at
	o.world.After(at.Sub(o.world.Now()), func() {
		if !o.next.Equal(at) { // there was an earlier one
			return
		}
		o.next = time.Time{}
		if _, again := o.run.Pass(); again > 0 {
			o.passAt(o.world.Now().Add(again))
		}
	})
}

// Plan implements operator.Planner as a pass of the controller plans.
func (o *spread) Plan(view *operator.View, now time.Time, _ uint64) ([]action.Step, time.Duration) {
	ctx := quiet()
	spread, err := o.current(ctx, o.key)
	if err != nil {
		return o.release(view, now)
	}
	todo := o.compute(ctx, spread, view.Refusals(spread, nil, 0))
	return todo.Steps, todo.RequeueAfter
}

// release plans the release of the pods of a spread that is gone.
func (o *spread) release(view *operator.View, now time.Time) ([]action.Step, time.Duration) {
	o.exists = false
	pods, err := o.snapshots.Naming(quiet(), o.key)
	if err != nil {
		o.world.Violate("the pods of a spread cannot be listed: %v", err)
	}
	gone := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.key.Namespace, Name: o.key.Name}}
	gone.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.WorkloadSpreadKind))
	todo := plan.Release(pods, view.Refusals(gone, nil, 0), now)
	return todo.Steps, todo.RequeueAfter
}

// renew computes the status again if something has happened.
func (o *spread) renew(ctx context.Context) {
	if !o.stale {
		return
	}
	spread, err := o.current(ctx, o.key)
	if err != nil {
		o.exists = false
		return
	}
	o.compute(ctx, spread, nil)
}

// compute makes the plan of a pass, and keeps its status at once: a world has one writer of it.
func (o *spread) compute(ctx context.Context, spread *v1beta1.WorkloadSpread, refusals action.Refusals) plan.Plan {
	o.stale, o.exists = false, true
	if spread.DeletionTimestamp != nil {
		return plan.Plan{}
	}
	snapshot, _, err := o.snapshots.Read(ctx, spread)
	if o.state.Err = err; err != nil {
		return plan.Plan{}
	}
	snapshot.Refusals = refusals
	todo := plan.Compute(snapshot)
	o.keep(spread, *todo.Status)
	o.state.count(spread, todo.Numbers())
	return todo
}

// keep remembers the status of a spread. A pass follows one that is new, as it finds more to do then.
func (o *spread) keep(of *v1beta1.WorkloadSpread, status v1beta1.WorkloadSpreadStatus) {
	if !equality.Semantic.DeepEqual(o.state.Status, status) {
		o.passAt(o.world.Now().Add(pause))
	}
	o.uid, o.state.Status = of.UID, status
}

// count shows the numbers of a pass.
func (s *State) count(of *v1beta1.WorkloadSpread, n plan.Numbers) {
	s.Target = v1beta1.TargetReference{}
	s.Subsets = nil
	s.Without = n.Without
	if of.Spec.TargetReference != nil {
		s.Target = *of.Spec.TargetReference
	}
	for i, subset := range n.Subsets {
		s.Subsets = append(s.Subsets, Subset{
			Name:    subset.Name,
			Pods:    subset.Active,
			Limit:   int(subset.Limit),
			Missing: int(s.Status.SubsetStatuses[i].MissingReplicas),
			Closed:  subset.Closed,
		})
	}
}
