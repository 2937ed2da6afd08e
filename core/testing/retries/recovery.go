package retries

import (
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// CheckRecovery requires that within the recovery time after the end of all refusals nothing waits because of them.
func (j *Judge) CheckRecovery(known func() action.Refusals) {
	if len(j.refused) == 0 {
		return
	}
	all := known()
	j.serve(all)
	end := j.world.Begin()
	for _, r := range j.refused {
		if at := j.world.Begin().Add(r.Until); at.After(end) {
			end = at
		}
	}
	if j.world.Now().Before(end) {
		return
	}
	due := end.Add(recovery)
	for purpose := range all {
		if first := firstTurn(all, purpose); !j.others[purpose] && j.world.Now().Before(due) && first.After(due) {
			j.world.Violate("quiet under refusal: %v waits for %s after the refusals have ended", purpose, first.Sub(end))
		}
	}
}

// firstTurn returns when the first action of a purpose is tried again, or another such write to one of its objects: its
// success ends the pauses of the others.
func firstTurn(all action.Refusals, purpose action.Purpose) time.Time {
	var first time.Time
	known := all[purpose]
	for key := range known.Targets {
		for other, others := range all {
			r, refused := others.Targets[key]
			if refused && other.Verb == purpose.Verb && other.Kind == purpose.Kind && (first.IsZero() || r.Until.Before(first)) {
				first = r.Until
			}
		}
	}
	if known.Until.After(first) {
		return known.Until
	}
	return first
}
