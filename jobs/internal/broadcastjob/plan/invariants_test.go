package plan

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

func TestRandomWorldsKeepTheInvariants(t *testing.T) {
	seeds.Each(t, 400, func(t *testing.T, seed uint64) {
		t.Helper()
		w := newWorld(t, seed)
		for range 80 {
			w.at = w.at.Add(time.Second)
			w.disturb()
			w.operate()
			for _, name := range slices.Sorted(maps.Keys(w.pods)) {
				if w.IntN(4) == 0 {
					w.kubelet(name)
				}
			}
		}
		w.settle()
		w.judgeTheEnd()
	})
}

// longestPause is that after a refused write.
const longestPause = 31 * time.Second

// settle ends all faults, and lets the world come to rest within two minutes.
func (w *world) settle() {
	w.calm, w.refused, w.rested = true, "", w.at.Add(longestPause)
	w.edit(func(spec *v1beta1.BroadcastJobSpec) { spec.Paused, spec.Parallelism = false, new(intstr.FromInt(2)) })
	for range 120 {
		w.at = w.at.Add(time.Second)
		w.collect()
		if w.job != nil && w.job.Spec.Paused { // by a failed pod
			w.edit(func(spec *v1beta1.BroadcastJobSpec) { spec.Paused = false })
		}
		w.operate()
		w.onTime()
		w.inTime()
		for _, name := range slices.Sorted(maps.Keys(w.pods)) {
			w.kubelet(name)
		}
	}
}

// judgeTheEnd holds that a world at rest has what was wanted (G5, I-BCJ-6), and that nothing more is written.
func (w *world) judgeTheEnd() {
	if w.job == nil { // its time is over
		require.NotNil(w, w.ended)
		return
	}
	todo := compute(w.T, w.snapshot())
	assert.Empty(w, brief(&todo), "at rest nothing is written (G5)")
	status := w.job.Status
	for _, o := range w.pods {
		assert.True(w, ended(o), "a pod runs for ever")
	}
	if w.ended != nil {
		assert.Equal(w, *w.ended, status, "what an ended job says is final (I-BCJ-4)")
		return
	}
	assert.Equal(w, &status, todo.status, "at rest nothing is told (G5)")
	for name, n := range w.nodes {
		ran := w.counted[n.UID]
		for _, o := range w.pods {
			ran = ran || eligibility.NodeOf(o) == name
		}
		assert.True(w, ran || !n.ShouldRun, "node %s has no pod (I-BCJ-6): %s", name, status.Message)
	}
	if status.Desired > 0 && w.job.Spec.CompletionPolicy.Type != v1beta1.CompletionNever {
		assert.Fail(w, "the job has not ended", "%s", status.Message)
	}
}

// The bigger a job, the more a pass may cost, but no more than in proportion.
func BenchmarkAPassOverFiveThousandNodes(b *testing.B) {
	var s Snapshot
	s.Job, s.Now = job(), now
	for i := range 5000 {
		name := "node-" + string(rune('a'+i/676)) + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
		s.Nodes = append(s.Nodes, node(name))
		s.Pods = append(s.Pods, pod("p"+name, name, running))
	}
	b.ReportAllocs()
	for b.Loop() {
		Compute(s)
	}
}
