package ledger

import (
	"time"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget/plan"
)

// decide decides one request.
func (d *desk) decide(b *v1beta1.PodUnavailableBudget, req plan.Request, now time.Time) plan.Verdict {
	at, ok := d.recorded.Load(recordOf(req))
	req.Recorded = ok && now.Sub(at.(time.Time)) < plan.FreshFor
	req.Now = now
	return plan.Decide(b, req)
}

// decideAll decides a batch, each request in view of those before it, and returns the budget with all that is recorded.
func (d *desk) decideAll(b *v1beta1.PodUnavailableBudget, batch []*question, now time.Time) (after *v1beta1.PodUnavailableBudget, verdicts []plan.Verdict, confirm bool) {
	after = new(v1beta1.PodUnavailableBudget)
	*after = *b // decisions change no status: they return new ones
	for _, q := range batch {
		v := d.decide(after, q.request, now)
		if v.Next != nil {
			after.Status = *v.Next
		}
		confirm = confirm || v.Confirm
		verdicts = append(verdicts, v)
	}
	return after, verdicts, confirm
}

// wants reports whether something is to be written.
func wants(verdicts []plan.Verdict) bool {
	for i := range verdicts {
		if verdicts[i].Next != nil {
			return true
		}
	}
	return false
}

// remember keeps what was recorded, as of the moment at which the write began.
func (d *desk) remember(batch []*question, verdicts []plan.Verdict, begun time.Time) {
	for i, q := range batch {
		if verdicts[i].Next != nil {
			d.recorded.Store(recordOf(q.request), begun)
		}
	}
}

// keep remembers a version that the server has shown.
func (d *desk) keep(b *v1beta1.PodUnavailableBudget) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest = newer(b, d.newest)
}

// prune forgets what covers no request any more.
func (d *desk) prune(now time.Time) {
	d.recorded.Range(func(key, at any) bool {
		if now.Sub(at.(time.Time)) >= plan.FreshFor {
			d.recorded.Delete(key)
		}
		return true
	})
}

// reply answers each request as it was decided.
func reply(batch []*question, verdicts []plan.Verdict) {
	for i, q := range batch {
		q.answer <- answer{refused: verdicts[i].Refused}
	}
}

// fail answers the requests that had to be recorded or confirmed with an error, and the others as they were decided.
func fail(batch []*question, verdicts []plan.Verdict, err error) {
	for i, q := range batch {
		switch {
		case verdicts != nil && verdicts[i].Refused != "":
			q.answer <- answer{refused: verdicts[i].Refused}
		case verdicts != nil && verdicts[i].Next == nil && !verdicts[i].Confirm:
			q.answer <- answer{}
		default:
			q.answer <- answer{err: err}
		}
	}
}
