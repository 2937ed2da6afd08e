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

// maxMessage is the length in bytes of what the status says about a failure: there may be thousands of tags.
const maxMessage = 1024

// pulls are the pulls in memory, in the order in which they came.
type pulls struct {
	puller *puller
	wake   func() // is called when a pull has ended

	mu     sync.Mutex
	all    []*pull
	closed bool
	group  sync.WaitGroup
}

// pull is one of them. Its members are guarded by the lock of pulls.
type pull struct {
	plan.Pull
	order  plan.Order
	cancel context.CancelFunc // nil before the pull runs
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

// follow carries out a plan.
func (p *pulls) follow(ctx context.Context, todo *plan.Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range todo.Forget {
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
	for i := range todo.Orders {
		order := todo.Orders[i]
		if one := p.find(order.ID); one != nil {
			one.order = order
		} else {
			p.all = append(p.all, &pull{Pull: plan.Pull{ID: order.ID, State: plan.Queued}, order: order})
		}
	}
	for _, id := range todo.Begin {
		p.begin(ctx, id, startTime(todo, id))
	}
}

// startTime returns what the status of a plan says about a pull that begins.
func startTime(todo *plan.Plan, id plan.ID) *metav1.Time {
	states := todo.Status.ImageStatuses[id.Name].Tags
	if i := slices.IndexFunc(states, func(s v1beta1.ImageTagStatus) bool { return s.Tag == id.Tag }); i >= 0 {
		return states[i].StartTime
	}
	return nil
}

// find returns a pull that was not told to stop. The lock is held.
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

// begin starts a pull that is queued. It outlives the context, which belongs to a pass. The lock is held.
func (p *pulls) begin(ctx context.Context, id plan.ID, start *metav1.Time) {
	one := p.find(id)
	if one == nil || one.State != plan.Queued || start == nil || p.closed {
		return
	}
	ctx, one.cancel = context.WithCancel(context.WithoutCancel(ctx))
	one.State, one.StartTime = plan.Running, start
	p.group.Go(func() {
		imageID, err := p.puller.pull(ctx, start.Time, func() plan.Order {
			p.mu.Lock()
			defer p.mu.Unlock()
			return one.order
		})
		p.ended(one, imageID, err)
		p.wake()
	})
}

// ended keeps the result of a pull, or drops it when nobody waits for it any more.
func (p *pulls) ended(one *pull, imageID string, err error) {
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

// shorten cuts what runtimes and registries say, which may be whole pages, to what a status can hold.
func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + " ..."
}

// stop ends all pulls and returns when they have. What they were doing is not reported.
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
