package nodeimage

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/plan"
)

// reconciler reconciles NodeImages. It holds no state that the cluster does not hold; its memory only saves
// requests.
type reconciler struct {
	*base.Controller
	creationDelay time.Duration
	jobs          *jobs
	secrets       *secrets
	agents        *agents
	sightings     *plan.Sightings
}

func newReconciler(base *base.Controller, clock clock.WithTicker, creationDelay time.Duration) *reconciler {
	return &reconciler{
		Controller:    base,
		creationDelay: creationDelay,
		jobs: &jobs{
			Kind: optional.ImagePullJobs(), live: base.Live, clock: clock, gone: answers[plan.Job]{age: goneAge},
		},
		secrets: &secrets{live: base.Live, clock: clock, known: answers[types.NamespacedName]{age: secretAge}},
		agents:  &agents{since: map[types.NamespacedName]time.Time{}}, sightings: &plan.Sightings{},
	}
}

// Reconcile runs one pass over the NodeImage of the request's node.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.pass)
}

// pass reads the objects of one node, and plans.
func (r *reconciler) pass(ctx context.Context, key types.NamespacedName) (base.Pass, error) {
	snap, err := r.snapshot(ctx, key.Name)
	if err != nil {
		return base.Pass{}, err
	}
	if snap.Image == nil {
		r.agents.Forget(key)
		r.sightings.Forget(key)
	}
	if snap.Image == nil && snap.Node == nil {
		return base.Pass{}, apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("nodeimages").GroupResource(), key.Name)
	}
	snap.Refusals = r.KnownRefusals(owner(snap), nil, 0, snap.Now)
	todo := plan.Compute(snap)
	pass := base.Pass{Object: owner(snap)}
	if r.reports(snap, &todo) {
		pass.Status = func(action.Failures) client.Object {
			after := snap.Image.DeepCopy()
			after.Status = *todo.Status
			return after
		}
		pass.Reported = func() { r.agents.Forget(key) }
		todo.Notices, pass.OtherNotices = notices(snap.Name, todo.Failures)
	}
	pass.Plan = todo.Plan
	return pass, nil
}

// owner returns the object that the actions are recorded for: the NodeImage, or the node that is to get one.
func owner(snap plan.Snapshot) client.Object {
	if snap.Image != nil {
		return snap.Image
	}
	return snap.Node
}
