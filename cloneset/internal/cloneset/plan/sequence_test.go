package plan

import (
	"testing"
	"time"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// Stories are played in a calm world, where everything takes a second, and kept as files that read
// like a log. UPDATE_GOLDEN=1 writes them anew; the difference is the review.
func TestStories(t *testing.T) {
	inPlace := policy(v1beta1.InPlaceIfPossible)
	bad := map[string]cluster.Image{"app:bad": {CrashLoop: true}}
	stories := []struct {
		name     string
		replicas int32
		given    []setOption
		tell     func(w *simulate.World)
	}{
		{"scale-up", 3, nil, nil},
		{"in-place", 4, []setOption{inPlace, maxUnavailable("2")}, minutely(wants("app:2"))},
		{"recreate", 3, nil, minutely(wants("app:2"))},
		{"partition", 3, []setOption{inPlace, partition("2")}, minutely(wants("app:2"), told{"lowers the partition to 0", partition("0")})},
		{"surge", 2, []setOption{maxSurge("1"), maxUnavailable("0")}, minutely(wants("app:2"))},
		{"surge-in-place", 2, []setOption{inPlace, maxSurge("1"), maxUnavailable("0")}, minutely(wants("app:2"))},
		{"hook-update", 1, []setOption{inPlace, hooked(), hookTaken()}, minutely(wants("app:2"))},
		{"hook-delete", 2, []setOption{hooked(), hookTaken()}, minutely(told{"wants 1 replica", replicas(1)})},
		{"hook-normal", 1, []setOption{preNormalHook()}, nil},
		{"grace-second-edit", 1, []setOption{inPlace, grace(20)}, timely(10*time.Second, wants("app:2"), wants("app:3"))},
		{"fix-forward", 3, []setOption{inPlace}, timely(time.Minute, wants("app:bad"), wants("app:2"))},
		{"rollback", 3, []setOption{maxUnavailable("2")}, timely(4*time.Second, wants("app:2"), wants("app:1"))},
		{"specified-surge", 2, []setOption{maxSurge("1"), maxUnavailable("0")}, func(w *simulate.World) {
			minutely(told{"names the oldest pod in podsToDelete", nameOne(w)})(w)
		}},
		{"claims", 2, []setOption{claimed("data")}, minutely(told{"wants 1 replica", replicas(1)}, wants("app:2"))},
	}
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			w, p := play(t, cluster.Options{Calm: true, Seed: 1, Images: bad}, s.replicas, s.given...)
			answers(w, 3*time.Second)
			if s.tell != nil {
				s.tell(w)
			}
			simulate.Settle(t, w, p, 500)
			arrived(t, w)
			simulate.CompareStory(t, w, "testdata/"+s.name+".txt")
		})
	}
}

// told is an edit and how the story tells it.
type told struct {
	what   string
	change setOption
}

func wants(name string) told { return told{"wants " + name, image(name)} }

// minutely makes one edit a minute, or later where faults keep the set from what it wants until then.
func minutely(edits ...told) func(*simulate.World) {
	return func(w *simulate.World) {
		w.Edits(time.Minute, toldEdits(w, func() bool { return len(unarrived(w)) == 0 }, edits)...)
	}
}

// timely makes the first edit after a minute and the others at an interval.
func timely(interval time.Duration, edits ...told) func(*simulate.World) {
	return func(w *simulate.World) { w.Edits(interval, toldEdits(w, nil, edits)...) }
}

func toldEdits(w *simulate.World, ready func() bool, edits []told) []simulate.Edit {
	all := make([]simulate.Edit, 0, len(edits))
	for _, e := range edits {
		all = append(all, simulate.Edit{What: e.what, Ready: ready, Do: func() { edit(w, e.change) }})
	}
	return all
}
