package pass

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/ledger"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

// statusAttempts is how often a pass writes a status that others write, too, each time from the newest version.
const statusAttempts = 5

// errOvertaken means that another writer was first.
var errOvertaken = errors.New("another client has changed it")

// statusReport is the outcome of a pass for the status of its object. The zero value means that the pass has none to write.
type statusReport struct {
	compared bool          // the status that the pass wants is known
	wrote    bool          // the pass wrote it
	again    time.Duration // when to reconcile the object at the latest, 0 for never
	err      error
}

// shown reports whether the object has the status that the pass wants.
func (r statusReport) shown() bool { return r.wrote || r.compared && r.again == 0 && r.err == nil }

// reportStatus brings the object of the pass to its next status, after. After a refusal the status is not sent before a
// pause is over. A conflict with another writer is no refusal: the status is computed again if the pass can do that, and
// otherwise waits for the next pass, which the event of that write starts.
func (c *Controller) reportStatus(ctx context.Context, p *Pass, after client.Object) statusReport {
	r := statusReport{compared: true}
	if equality.Semantic.DeepEqual(p.Object, after) {
		return r
	}
	key := memory.KeyOf(p.Object)
	now := c.Clock.Now()
	plan := action.Report(p.Object, c.Refusals.For(key, refusals.Observation{Now: now, Generation: p.Object.GetGeneration()}), now)
	if plan.Empty() {
		r.again = plan.RequeueAfter
		return r
	}
	write := func(*action.Action) progress.Outcome {
		if r.wrote, r.err = c.writeStatus(ctx, p, after); errors.Is(r.err, errOvertaken) {
			return progress.Overtaken(r.err)
		}
		return progress.OutcomeOf(r.err)
	}
	done := progress.Run(plan.Steps, progress.InTurn(write, c.Clock.Now), progress.Options{
		Workload:   key,
		Generation: p.Object.GetGeneration(),
		Refusals:   c.Refusals,
	})
	r.again = done.RetryAfter
	switch {
	case r.err != nil && done.Stale > 0: // the event of that change brings the next pass
		r.err = nil
	case r.err != nil:
		r.wrote = false
		r.err = fmt.Errorf("patch status: %w", r.err)
	}
	return r
}

// writeStatus writes the status, and again from the newest version of the object while others are first.
func (c *Controller) writeStatus(ctx context.Context, p *Pass, after client.Object) (wrote bool, err error) {
	if p.Through != nil && p.Renew != nil {
		return c.writeThrough(ctx, p, after)
	}
	before := p.Object
	for range statusAttempts {
		wrote, err = c.Status.Patch(ctx, before, after)
		if !apierrors.IsConflict(err) {
			return wrote, err
		}
		newer := c.newest(ctx, before)
		if newer == nil {
			return false, err
		}
		err = fmt.Errorf("%w: %w", errOvertaken, err)
		if p.Renew == nil {
			return false, err
		}
		next, notices := p.Renew(newer)
		if next == nil {
			return false, err
		}
		before, after, p.Plan.Notices = newer, next, notices
	}
	return false, err
}

// writeThrough writes the status by the queue of those who write it in this process.
func (c *Controller) writeThrough(ctx context.Context, p *Pass, after client.Object) (wrote bool, err error) {
	notices := p.Plan.Notices
	written, err := p.Through(ctx, p.Object, func(newest client.Object) client.Object {
		if newest.GetResourceVersion() == p.Object.GetResourceVersion() {
			return after
		}
		next, of := p.Renew(newest)
		notices = of
		return next
	})
	switch {
	case errors.Is(err, ledger.ErrGone):
		return false, nil
	case errors.Is(err, ledger.ErrOutdated):
		return false, errOvertaken
	case err != nil:
		return false, err
	}
	p.Plan.Notices = notices
	if written == nil {
		return false, nil
	}
	c.Status.Recorder.Written(client.ObjectKeyFromObject(p.Object), written)
	return true, nil
}

// newest returns the object as the server has it if that is another version. It is nil if no client has written the
// object since, so that a conflict was the server's own decision. It is also nil if that cannot be found out.
func (c *Controller) newest(ctx context.Context, known client.Object) client.Object {
	newer, ok := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(known).Elem()))
	if !ok {
		return nil
	}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(known), newer)
	if err != nil || newer.GetUID() != known.GetUID() || newer.GetResourceVersion() == known.GetResourceVersion() {
		return nil
	}
	return newer
}
