package containermeta

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
)

// controllerName is the name of the controller in logs.
const controllerName = "containermeta"

const (
	workers = 5
	// unavailablePeriod is when the next pass runs while the runtime does not answer.
	unavailablePeriod = 5 * time.Second
)

// reconciler runs the passes over the pods of the node.
type reconciler struct {
	*pass.Controller
	config Config
	passes *Passes
	stops  *stops.Stops
}

// Start waits for the restarts under way when the manager ends.
func (r *reconciler) Start(ctx context.Context) error {
	<-ctx.Done()
	r.stops.Wait()
	return nil
}

// Reconcile runs one pass over the pod of the request.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.passes.Look)
}
