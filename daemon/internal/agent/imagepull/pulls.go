package imagepull

import (
	"context"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/imagepull/plan"
)

// maxMessage limits the message of a failure in the status, in bytes: there may be thousands of tags.
const maxMessage = 1024

// pulls are the pulls in memory, in the order in which they were added.
type pulls struct {
	puller *puller
	wake   func() // called when a pull has ended

	mu     sync.Mutex
	all    []*pull
	closed bool
	group  sync.WaitGroup
}

// pull is one of them. Its members are guarded by the lock of pulls.
type pull struct {
	plan.Pull
	request plan.PullRequest
	cancel  context.CancelFunc // nil before the pull runs
}

// list returns the pulls as a plan sees them.
func (p *pulls) list() []plan.Pull {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]plan.Pull, len(p.all))
	for i, one := range p.all {
		out[i] = one.Pull
	}
	return out
}

// execute carries out a plan.
func (p *pulls) execute(ctx context.Context, todo *plan.Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range todo.Drop {
		p.all = slices.DeleteFunc(p.all, func(one *pull) bool { return one.ID == id && one.cancel == nil })
	}
	for _, id := range todo.Stop {
		if one := p.find(id); one != nil && one.State == plan.Running {
			one.State = plan.Stopping
			one.cancel()
		} else if one != nil && one.State == plan.Ended { // it ended since the plan was made
			p.remove(one)
		}
	}
	for i := range todo.Requests {
		request := todo.Requests[i]
		if one := p.find(request.ID); one != nil {
			one.request = request
		} else {
			p.all = append(p.all, &pull{Pull: plan.Pull{ID: request.ID, State: plan.Queued}, request: request})
		}
	}
	for _, id := range todo.Start {
		p.start(ctx, id, startTime(todo, id))
	}
}

// startTime returns the start of a pull that begins, as the status of a plan shows it.
func startTime(todo *plan.Plan, id plan.ID) *metav1.Time {
	states := todo.Status.ImageStatuses[id.Name].Tags
	if i := slices.IndexFunc(states, func(s v1beta1.ImageTagStatus) bool { return s.Tag == id.Tag }); i >= 0 {
		return states[i].StartTime
	}
	return nil
}

// find returns a pull that was not asked to stop. The lock is held.
func (p *pulls) find(id plan.ID) *pull {
	i := slices.IndexFunc(p.all, func(one *pull) bool { return one.ID == id && one.State != plan.Stopping })
	if i < 0 {
		return nil
	}
	return p.all[i]
}

// remove drops a pull. The lock is held.
func (p *pulls) remove(gone *pull) {
	p.all = slices.DeleteFunc(p.all, func(one *pull) bool { return one == gone })
}

// start starts a pull that is queued. It outlives the context, which belongs to a pass. The lock is held.
func (p *pulls) start(ctx context.Context, id plan.ID, start *metav1.Time) {
	one := p.find(id)
	if one == nil || one.State != plan.Queued || start == nil || p.closed {
		return
	}
	ctx, one.cancel = context.WithCancel(context.WithoutCancel(ctx))
	one.State, one.StartTime = plan.Running, start
	p.group.Go(func() {
		imageID, err := p.puller.pull(ctx, start.Time, func() plan.PullRequest {
			p.mu.Lock()
			defer p.mu.Unlock()
			return one.request
		})
		p.finish(one, imageID, err)
		p.wake()
	})
}

// finish stores the result of a pull, or removes the pull if it was asked to stop.
func (p *pulls) finish(one *pull, imageID string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.cancel()
	one.cancel = nil
	if one.State == plan.Stopping {
		p.remove(one)
		return
	}
	one.State = plan.Ended
	one.Result = plan.Result{ImageID: imageID, At: metav1.Time{Time: p.puller.clock.Now()}}
	if err != nil {
		one.Result.Failure = shorten(err.Error())
	}
}

// shorten limits messages of runtimes and registries, which may be very long, to maxMessage.
func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + " ..."
}

// stop ends all pulls and returns when they have ended. Their results are not reported.
func (p *pulls) stop() {
	p.mu.Lock()
	p.closed = true
	for _, one := range p.all {
		if one.cancel != nil {
			one.State = plan.Stopping
			one.cancel()
		}
	}
	p.mu.Unlock()
	p.group.Wait()
}
