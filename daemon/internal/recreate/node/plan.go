package node

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/result"
)

const (
	// defaultGrace is the time for hook and stop of a request that does not set one.
	defaultGrace = 30 * time.Second
	// lookAgain is how often the runtime is read while a change is expected.
	lookAgain = time.Second
	// lookAgainAtMost is the longest time between two reads of a container that does not come back.
	lookAgainAtMost = 10 * time.Second
	// heartbeat is how long a request that is worked on may go without a write. The manager waits for three of
	// them.
	heartbeat = 20 * time.Second
)

// Compute decides the next step for the requests of one pod: one request at a time, one stop at a time.
func Compute(s Snapshot) Plan {
	plan := Plan{Abort: abandoned(s), Plan: action.Plan{Refusals: s.Refusals, Now: s.Now}}
	carryThrough(s, &plan)
	if len(plan.Abort) > 0 {
		plan.RequeueWithin(lookAgain) // the memory of the pod is dropped once nothing is left of it
	}
	for i, request := range waiting(s) {
		switch {
		case i == 0:
			p := &pass{Snapshot: s, request: request, plan: &plan}
			p.advance()
		case request.Status.Phase == "":
			plan.write(request, map[string]any{"phase": v1beta1.RecreatePending})
		}
	}
	plan.Plan = action.Admit(plan.Plan)
	return plan
}

// waiting returns the requests that are not over, in their turn: those that have begun, or may have, come first, the
// oldest first.
func waiting(s Snapshot) []*v1beta1.ContainerRecreateRequest {
	var queue []*v1beta1.ContainerRecreateRequest
	for _, r := range s.Requests {
		if s.stands(r) && r.Status.Phase != v1beta1.RecreateCompleted {
			queue = append(queue, r)
		}
	}
	slices.SortFunc(queue, func(a, b *v1beta1.ContainerRecreateRequest) int {
		return cmp.Or(
			cmp.Compare(s.rank(a), s.rank(b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
	return queue
}

func (s *Snapshot) rank(r *v1beta1.ContainerRecreateRequest) int {
	switch phase := r.Status.Phase; {
	case phase == v1beta1.RecreateRecreating:
		return 0
	case s.Begun[r.UID]:
		return 1
	case phase == v1beta1.RecreatePending:
		return 2
	default:
		return 3
	}
}

// pass is the working state of one computation.
type pass struct {
	Snapshot
	request *v1beta1.ContainerRecreateRequest
	plan    *Plan
}

// advance takes the next step of the request that has its turn. Containers are evaluated once the pod has been out of
// service for long enough.
func (p *pass) advance() {
	if grace := p.graceLeft(); grace != 0 || p.PodGone {
		p.record(p.present())
		p.plan.RequeueWithin(grace)
		return
	}
	containers := p.request.Spec.Containers
	all := make([]evaluated, len(containers))
	for i := range containers {
		all[i] = p.evaluate(&containers[i])
	}
	chosen := p.choose(all)
	if chosen != nil {
		p.begin(chosen)
	}
	states := make([]v1beta1.ContainerRecreateState, len(all))
	for i := range all {
		states[i] = all[i].state
	}
	if p.over(all) {
		p.complete(states)
		return
	}
	for i := range all {
		p.plan.RequeueWithin(all[i].wake)
	}
	if chosen != nil {
		p.report(states) // nothing begins on a view that the server does not confirm
		return
	}
	p.record(states)
}

// present returns the present states, Pending for containers without one.
func (p *pass) present() []v1beta1.ContainerRecreateState {
	states := make([]v1beta1.ContainerRecreateState, len(p.request.Spec.Containers))
	for i := range states {
		states[i] = p.before(p.request.Spec.Containers[i].Name)
	}
	return states
}

// record writes the states of a request that continues, if they have changed or a heartbeat is due.
func (p *pass) record(states []v1beta1.ContainerRecreateState) {
	same := p.request.Status.Phase == v1beta1.RecreateRecreating && equality.Semantic.DeepEqual(p.request.Status.ContainerRecreateStates, states)
	if left := p.untilHeartbeat(); same && left > 0 {
		p.plan.RequeueWithin(left)
		return
	}
	p.report(states)
}

// report writes the states with a heartbeat.
func (p *pass) report(states []v1beta1.ContainerRecreateState) {
	p.plan.write(p.request, map[string]any{
		"phase":                   v1beta1.RecreateRecreating,
		"containerRecreateStates": states,
		"lastHeartbeatTime":       metav1.NewTime(p.Now),
	})
	p.plan.RequeueWithin(heartbeat)
}

// untilHeartbeat returns how long the last write may go without another one. Its time is this node's.
func (p *pass) untilHeartbeat() time.Duration {
	last := p.request.Status.LastHeartbeatTime
	if last == nil || last.After(p.Now) {
		return 0
	}
	return max(last.Add(heartbeat).Sub(p.Now), 0)
}

// choose picks the container to stop, none as nil.
func (p *pass) choose(all []evaluated) *evaluated {
	strategy := p.strategy()
	for i := range all {
		j := &all[i]
		switch {
		case j.standing == failed && strategy.FailurePolicy != v1beta1.FailurePolicyIgnore:
			return nil
		case j.standing == succeeded, j.standing == failed:
		case j.standing == stopping:
			return nil
		case j.standing != stoppable:
			if strategy.OrderedRecreate {
				return nil
			}
		case p.stopsAnother(j.run.ID):
			return nil
		default:
			return j
		}
	}
	return nil
}

// begin takes the stop of a container one step further, and marks that in its state: first the hook, then the
// stop itself.
func (p *pass) begin(j *evaluated) {
	i := slices.IndexFunc(p.request.Spec.Containers, func(c v1beta1.ContainerToRecreate) bool { return c.Name == j.state.Name })
	kill := killOf(p.request, &p.request.Spec.Containers[i], j.run.ID)
	hookOver := j.state.IsKilled || p.Stops[j.run.ID].Stage == AfterHook
	if kill.PreStop != nil && kill.Grace > 0 && !hookOver {
		j.state.ContainerID = j.run.ID
		p.plan.Hook = kill
		return
	}
	mark(&j.state, j.run.ID)
	p.plan.Kill = kill
}

func killOf(r *v1beta1.ContainerRecreateRequest, c *v1beta1.ContainerToRecreate, id string) *Kill {
	grace := defaultGrace
	if s := r.Spec.Strategy; s != nil && s.TerminationGracePeriodSeconds != nil {
		grace = action.Seconds(*s.TerminationGracePeriodSeconds)
	}
	return &Kill{
		Request:     r,
		Container:   c.Name,
		ContainerID: id,
		PreStop:     c.PreStop,
		Ports:       c.Ports,
		Grace:       grace,
		Message:     fmt.Sprintf("Stopping container %s by ContainerRecreateRequest %s", c.Name, r.Name),
	}
}

// stopsAnother reports whether a stop of another container is under way.
func (p *pass) stopsAnother(id string) bool {
	for other, stop := range p.Stops {
		if other != id && stop.Stage != Ended {
			return true
		}
	}
	return false
}

// graceLeft returns the rest of unreadyGracePeriodSeconds; negative while the manager has not taken the pod out of
// service. Once a container was evaluated, the time is over.
func (p *pass) graceLeft() time.Duration {
	seconds := p.strategy().UnreadyGracePeriodSeconds
	begun := slices.ContainsFunc(p.request.Status.ContainerRecreateStates, func(s v1beta1.ContainerRecreateState) bool {
		return s.IsKilled || s.Phase != v1beta1.RecreatePending
	})
	if seconds == nil || begun {
		return 0
	}
	if !meta.IsStatusConditionTrue(p.request.Status.Conditions, v1beta1.PreRecreateGrace) {
		return -1
	}
	since, ok := p.GraceSeen[p.request.UID]
	if !ok {
		since = p.Now
	}
	return max(since.Add(action.Seconds(*seconds)).Sub(p.Now), 0)
}

// over reports whether nothing is left to do for the request: all containers have ended, or one has failed and
// failurePolicy is not Ignore.
func (p *pass) over(all []evaluated) bool {
	ignore := p.strategy().FailurePolicy == v1beta1.FailurePolicyIgnore
	left := 0
	for i := range all {
		switch {
		case all[i].standing == failed && !ignore:
			return true
		case all[i].standing != succeeded && all[i].standing != failed:
			left++
		}
	}
	return left == 0
}

func (p *pass) complete(states []v1beta1.ContainerRecreateState) {
	now := metav1.NewTime(p.Now)
	p.plan.write(p.request, map[string]any{
		"phase":                   v1beta1.RecreateCompleted,
		"completionTime":          now,
		"containerRecreateStates": states,
		"conditions":              result.Ended(p.request, states, now),
	})
}

func (p *pass) strategy() v1beta1.RecreateStrategy {
	if s := p.request.Spec.Strategy; s != nil {
		return *s
	}
	return v1beta1.RecreateStrategy{}
}
