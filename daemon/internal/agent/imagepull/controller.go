package imagepull

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/imagepull/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
)

// controllerName is the name of the controller in logs and user agents.
const controllerName = "imagepull"

const (
	// The rate limit of status writes: a node with many tags must not overload the API server.
	writesPerSecond, writeBurst = 0.5, 5
	limitedPeriod               = 2 * time.Second
	// The time to the next pass: while tags are unfinished, and otherwise.
	unfinishedPeriod, resyncPeriod = 4 * time.Second, 25 * time.Minute
)

// Puller starts and stops pulls as the NodeImage asks.
type Puller struct {
	*pass.Controller
	config  Config
	pulls   *pulls
	limiter flowcontrol.RateLimiter
	wakeup  chan event.GenericEvent
}

// Start ends the pulls when the manager ends.
func (p *Puller) Start(ctx context.Context) error {
	<-ctx.Done()
	p.pulls.stop()
	return nil
}

// Wake requests a pass soon.
func (p *Puller) Wake() {
	select {
	case p.wakeup <- event.GenericEvent{Object: &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: p.config.Node}}}:
	default: // a pass that has not begun yet reads the same state
	}
}

// Reconcile runs one pass over the NodeImage of the node.
func (p *Puller) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return p.Handle(ctx, req, p.pass)
}

// pass reads the NodeImage and the runtime, and plans.
func (p *Puller) pass(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	image, err := fastclient.Get[v1beta1.NodeImage](ctx, p.Reader, key)
	if client.IgnoreNotFound(err) != nil {
		return pass.Pass{}, fmt.Errorf("read node image %s: %w", key.Name, err)
	}
	todo := plan.Compute(p.snapshot(image))
	if image == nil {
		p.pulls.execute(ctx, &todo)
		return pass.Pass{}, err
	}
	made := pass.Pass{Object: image, Do: func(ctx context.Context, _ func() progress.Result) progress.Result {
		p.pulls.execute(ctx, &todo)
		p.setMetrics(todo.Status)
		return progress.Result{}
	}}
	made.Plan.RequeueWithin(p.config.Jitter(resyncPeriod))
	if todo.Unfinished {
		made.Plan.RequeueWithin(p.config.Jitter(unfinishedPeriod))
	}
	return made, p.planStatus(&made, image, &todo)
}

// planStatus adds the status, if it differs, and the events of ended pulls to the pass. The limiter limits writes;
// those that are deferred because they were refused take none of its tokens.
func (p *Puller) planStatus(made *pass.Pass, image *v1beta1.NodeImage, todo *plan.Plan) error {
	after := image.DeepCopy()
	after.Status = *todo.Status
	changes, err := client.MergeFrom(image).Data(after)
	if err != nil {
		return fmt.Errorf("compare the statuses of node image %s: %w", image.Name, err)
	}
	if string(changes) == "{}" {
		return nil
	}
	now := p.Clock.Now()
	if known := p.KnownRefusals(image, nil, 0, now); !statusDeferred(image, known, now) && !p.limiter.TryAccept() {
		made.Plan.RequeueWithin(limitedPeriod)
		return nil
	}
	made.Status = func(action.Failures) client.Object { return after }
	made.After = func(_ context.Context, reported bool) time.Duration {
		if reported {
			p.observe(todo.Ended)
		}
		return 0
	}
	for i := range todo.Ended {
		p.addEvents(made, image, &todo.Ended[i])
	}
	return nil
}

// statusDeferred reports whether the write of the status is deferred because it was refused.
func statusDeferred(image *v1beta1.NodeImage, known action.Refusals, now time.Time) bool {
	report := action.Report(image, known, now)
	return report.Empty()
}

// addEvents adds the events of an ended pull. They are recorded once the status is written.
func (p *Puller) addEvents(made *pass.Pass, image *v1beta1.NodeImage, ended *plan.EndedPull) {
	if ended.Failure == "" {
		made.Plan.Notices = append(made.Plan.Notices, action.Notice{
			Type:       corev1.EventTypeNormal,
			Reason:     EventSucceeded,
			Action:     pullAction,
			WithStatus: true,
			Note:       fmt.Sprintf("Image %s is on node %s", ended.Ref, p.config.Node),
		})
		return
	}
	failed := action.Notice{
		Type:       corev1.EventTypeWarning,
		Reason:     EventFailed,
		Action:     pullAction,
		WithStatus: true,
		Note:       fmt.Sprintf("Failed to pull image %s on node %s: %s", ended.Ref, p.config.Node, ended.Failure),
	}
	made.Plan.Notices = append(made.Plan.Notices, failed)
	failed.Related = image
	for i := range ended.Owners {
		made.OtherNotices = append(made.OtherNotices, pass.Notices{Object: &ended.Owners[i], Events: []action.Notice{failed}})
	}
}

// observe adds ended pulls to the metrics.
func (p *Puller) observe(ended []plan.EndedPull) {
	for i := range ended {
		p.config.Metrics.PullSeconds.WithLabelValues(resultOf(&ended[i])).Observe(ended[i].Took.Seconds())
	}
}

func resultOf(ended *plan.EndedPull) string {
	if ended.Failure != "" {
		return metrics.ResultFailed
	}
	return metrics.ResultSucceeded
}

// setMetrics sets the number of tags of each phase.
func (p *Puller) setMetrics(status *v1beta1.NodeImageStatus) {
	for phase, count := range map[v1beta1.ImagePullPhase]int32{
		v1beta1.ImageWaiting:   status.Waiting,
		v1beta1.ImagePulling:   status.Pulling,
		v1beta1.ImageSucceeded: status.Succeeded,
		v1beta1.ImageFailed:    status.Failed,
	} {
		p.config.Metrics.Pulls.WithLabelValues(string(phase)).Set(float64(count))
	}
}
