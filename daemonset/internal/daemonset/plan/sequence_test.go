package plan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

// Stories are played in a calm world, where everything takes a second, and kept as files that read like a log.
// UPDATE_GOLDEN=1 writes them anew; the difference is the review.
func TestStories(t *testing.T) {
	bad := map[string]cluster.Image{"app:bad": {CrashLoop: true}}
	taint := func(w *simulate.World, effect corev1.TaintEffect) {
		w.EditNode(cluster.CloudActor, "node-1", func(n *corev1.Node) {
			n.Spec.Taints = nil
			if effect != "" {
				n.Spec.Taints = []corev1.Taint{{Key: "busy", Effect: effect}}
			}
		})
	}
	stories := []struct {
		name  string
		nodes int
		given []setOption
		tell  func(w *simulate.World)
	}{
		{"first-pods", 3, nil, nil},
		{"recreate", 3, nil, minutely(wants("app:2"))},
		{"recreate-two-at-a-time", 4, []setOption{maxUnavailable("50%")}, minutely(wants("app:2"))},
		{"in-place", 3, []setOption{inPlace}, minutely(wants("app:2"))},
		{"surge", 3, []setOption{maxSurge("1")}, minutely(wants("app:2"))},
		{"surge-all-with-min-ready", 2, []setOption{maxSurge("100%"), minReady(10)}, minutely(wants("app:2"))},
		{"two-updates-within-min-ready", 3, []setOption{minReady(20)}, timely(30*time.Second, wants("app:2"), wants("app:3"))},
		{"partition", 3, []setOption{inPlace, partition("2")}, minutely(wants("app:2"), told{"lowers the partition to 0", partition("0")})},
		{"partition-both-ways", 3, []setOption{reverting, partition("2")}, minutely(wants("app:2"), told{"lowers the partition to 1", partition("1")}, told{"raises the partition to 2", partition("2")}, told{"lowers the partition to 0", partition("0")}, told{"raises the partition to 2", partition("2")})},
		{"selector", 3, []setOption{onNodes("node-1")}, minutely(wants("app:2"), told{"selects node-2 too", onNodes("node-1", "node-2")})},
		{"partitioned-first-pods", 3, []setOption{partition("2"), partitionedScaling}, minutely(told{"lowers the partition to 1", partition("1")}, told{"lowers the partition to 0", partition("0")})},
		{"fix-forward", 3, nil, timely(time.Minute, wants("app:bad"), wants("app:2"))},
		{"hook", 2, []setOption{hooked, hookTaken}, minutely(wants("app:2"))},
		{"on-delete", 2, []setOption{deleting}, func(w *simulate.World) {
			w.Edits(time.Minute,
				simulate.Edit{What: "wants app:2", Do: func() { edit(w, image("app:2")) }},
				simulate.Edit{What: "deletes a pod", Do: func() { _ = w.Delete(cluster.UserActor, w.Pods()[0]) }},
			)
		}},
		{"nodes-come-and-go", 2, nil, func(w *simulate.World) {
			w.Edits(time.Minute,
				simulate.Edit{What: "adds node-2", Do: func() { w.AddNode("node-2") }},
				simulate.Edit{What: "taints node-1 NoSchedule", Do: func() { taint(w, corev1.TaintEffectNoSchedule) }},
				simulate.Edit{What: "taints node-1 NoExecute", Do: func() { taint(w, corev1.TaintEffectNoExecute) }},
				simulate.Edit{What: "takes the taint away", Do: func() { taint(w, "") }},
				simulate.Edit{What: "removes node-0", Do: func() { w.RemoveNode("node-0") }},
			)
		}},
		{"a-node-fails-in-mid-rollout", 3, []setOption{unready("Skip")}, func(w *simulate.World) {
			w.Edits(time.Minute,
				simulate.Edit{What: "fails node-1", Do: func() { w.FailNode("node-1") }},
				simulate.Edit{What: "wants app:2", Do: func() { edit(w, image("app:2")) }},
				simulate.Edit{What: "recovers node-1", Do: func() { w.RecoverNode("node-1") }},
			)
		}},
	}
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			w, p := play(t, cluster.Options{Calm: true, Seed: 1, Images: bad}, s.nodes, s.given...)
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
