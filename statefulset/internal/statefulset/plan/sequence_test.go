package plan

import (
	"testing"
	"time"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
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
		{"scale-up-parallel", 3, nil, nil},
		{"scale-in-order", 3, []setOption{inOrder()}, minutely(told{"wants 1 replica", replicas(1)})},
		{"recreate-in-order", 3, []setOption{inOrder()}, minutely(wants("app:2"))},
		{"in-place-parallel", 4, []setOption{inPlace, maxUnavailable("2")}, minutely(wants("app:2"))},
		{"partition", 3, []setOption{inPlace, partition(2)}, minutely(wants("app:2"), told{"lowers the partition to 0", partition(0)})},
		{"reserve", 4, []setOption{reserved(1)}, minutely(told{"reserves 3 too", reserved(1, 3)}, told{"wants 3 replicas", replicas(3)})},
		{"scale-strategy", 2, []setOption{scaleUnavailable("2")}, minutely(told{"wants 6 replicas", replicas(6)})},
		{"fix-forward-in-order", 3, []setOption{inOrder()}, timely(time.Minute, wants("app:bad"), wants("app:2"))},
		{"faulty-first-revision", 3, []setOption{inOrder(), image("app:bad")}, timely(time.Minute, wants("app:2"))},
		{"hook-update-in-order", 2, []setOption{inOrder(), inPlace, hooked(), hookTaken()}, minutely(wants("app:2"))},
		{"hook-scale-in-order", 3, []setOption{inOrder(), hooked(), hookTaken()}, minutely(told{"wants 1 replica", replicas(1)})},
		{"claims-go-with-scale", 2, []setOption{claimed("data"), retention("Retain", "Delete")}, minutely(told{"wants 1 replica", replicas(1)}, told{"wants 2 replicas", replicas(2)})},
		{"claims-grow", 2, []setOption{claimed("data"), growing("1Gi")}, minutely(told{"wants 2Gi and app:2", both(growing("2Gi"), image("app:2"))})},
		{"claim-template-added", 2, []setOption{claimed("data"), inPlace}, minutely(told{"adds claim template log", claimed("log")})},
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

func both(changes ...setOption) setOption {
	return func(s *v1beta1.StatefulSet) {
		for _, c := range changes {
			c(s)
		}
	}
}

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
