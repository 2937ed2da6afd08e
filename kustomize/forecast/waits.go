package forecast

import (
	"time"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// waits are the reasons for which a rollout has waited, as condition Ready of its workload showed them.
type waits struct {
	found []Wait
	times []time.Time // when each was first shown
	lasts []time.Duration
	now   int // the one that is shown at present, -1 for none
	since time.Time
}

// isOrdinary reports whether a reason of condition Ready means that a rollout takes its course: pods start, and the limits of
// the spec hold.
func isOrdinary(reason string) bool {
	switch reason {
	case "Progressing", "MaxUnavailable", "MaxSurge", "ScaleMaxUnavailable", "KubeletBehind", "ContainerPending":
		return true
	}
	return false
}

// brief is the shortest wait that is reported.
const brief = 2 * time.Second

// see takes the conditions of the workload in.
func (w *waits) see(set *workload.Set, now time.Time) {
	w.close(now)
	c := set.Condition("Ready")
	if c == nil || c.Status == "True" || isOrdinary(c.Reason) {
		w.now = -1
		return
	}
	w.since = now
	for i := range w.found {
		if w.found[i].Reason == c.Reason {
			w.now = i
			w.found[i].Message = c.Message
			return
		}
	}
	w.now = len(w.found)
	w.found = append(w.found, Wait{Reason: c.Reason, Message: c.Message})
	w.times = append(w.times, now)
	w.lasts = append(w.lasts, 0)
}

// close adds the time until now to the present wait.
func (w *waits) close(now time.Time) {
	if w.now >= 0 && w.now < len(w.found) && !w.since.IsZero() {
		w.lasts[w.now] += max(now.Sub(w.since), 0)
	}
	w.since = now
}

// list returns the waits of a rollout that began and ended at these moments.
func (w *waits) list(began, ended time.Time) []Wait {
	w.close(ended)
	var long []Wait
	for i, wait := range w.found {
		wait.Seconds = seconds(w.times[i].Sub(began))
		wait.Lasts = seconds(w.lasts[i])
		if w.lasts[i] >= brief {
			long = append(long, wait)
		}
	}
	return long
}
