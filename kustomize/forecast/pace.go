package forecast

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// recent is how many pauses between batches show the pace of a rollout.
const recent = 5

// Remaining returns how long the rollout of a scene still takes by its forecast. It is known if the rollout ends, and if its
// last batches began as far apart as the forecast has the next ones begin.
func Remaining(scene *Scene, r *Report) (left time.Duration, known bool) {
	set, err := workload.Read(scene.Kind, scene.Set)
	if err != nil || !r.Holds() {
		return 0, false
	}
	begun := scene.begun(set)
	next := begun[max(len(begun)-1, 0):]
	for _, b := range r.Batches {
		next = append(next, scene.Now.Add(inSeconds(b.Seconds)))
	}
	before, after := pauses(begun), pauses(next)
	if len(before) < 2 || len(after) < 1 {
		return 0, false
	}
	foretold := average(after)
	if off(average(before[max(len(before)-recent, 0):]), foretold) > max(together, share(foretold)) {
		return 0, false
	}
	return inSeconds(r.Seconds), true
}

// begun returns when the update of each pod of the new revision began, in order.
func (s *Scene) begun(set *workload.Set) []time.Time {
	var all []time.Time
	for _, pod := range s.Pods {
		if !set.IsUpdated(workload.RevisionOf(pod)) {
			continue
		}
		state, err := record.ReadState(action.NewPodChange(pod, metav1.NewTime(s.Now)))
		if err == nil && state != nil && state.UpdateTimestamp.After(pod.CreationTimestamp.Time) {
			all = append(all, state.UpdateTimestamp.Time)
		} else {
			all = append(all, pod.CreationTimestamp.Time)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// pauses returns the times between batches. Moments at most a second apart are of one batch.
func pauses(moments []time.Time) []time.Duration {
	var all []time.Duration
	for i, moment := range moments {
		if i > 0 {
			if d := moment.Sub(moments[i-1]); d > together {
				all = append(all, d)
			}
		}
	}
	return all
}

func average(all []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}

// ToGo describes the time that is left, such as "about 4 minutes to go".
func ToGo(left time.Duration) string {
	if left < 90*time.Second {
		return fmt.Sprintf("about %d seconds to go", max(int(left.Round(10*time.Second).Seconds()), 10))
	}
	return fmt.Sprintf("about %d minutes to go", int(left.Round(time.Minute).Minutes()))
}
