package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// judge checks that no subset has more pods of one version than it may have, and that each pod is as its subset says.
func (w *world) judge() {
	n := map[string]int32{}
	for _, pod := range w.pods {
		m, ok := subsets.MatchOf(pod)
		require.Equal(w, ok, pod.Spec.Affinity != nil || w.adopted[pod.Name], "%s: who is in no subset has the rules of none", pod.Name)
		if !ok {
			continue
		}
		if podstate.IsActive(pod) {
			n[subsets.VersionOf(pod, w.versioned())+" "+m.Subset]++
		}
		if w.adopted[pod.Name] {
			require.Nil(w, pod.Spec.Affinity, "%s: the rules of a running pod are its own", pod.Name)
			require.Equal(w, "node-"+m.Subset, pod.Spec.NodeName)
			continue
		}
		require.Equal(w, []corev1.NodeSelectorTerm{*in(m.Subset)}, required(pod), "%s has the rules of its subset and no others", pod.Name)
	}
	for i, limit := range w.limits() {
		for _, version := range w.versions {
			got := n[version+" "+w.spread.Spec.Subsets[i].Name]
			require.True(w, limit == subsets.Unlimited || got <= limit, "%s has %d pods of %d", w.spread.Spec.Subsets[i].Name, got, limit)
		}
	}
}

// I-WS-1, I-WS-2, I-WS-5, G5: no subset gets more pods than it may have, and no pod the rules of another one, whatever is
// lost, late or killed. Pods that cannot be scheduled are deleted once. In the end places are counted as they are, and
// nothing is written any more.
func TestNoSubsetIsOverfilled(t *testing.T) {
	placed, overflow, adopted, moved := 0, 0, 0, 0
	seeds.Each(t, 100, func(t *testing.T, seed uint64) {
		t.Helper()
		w := newWorld(t, seed)
		for range worldSteps {
			w.at = w.at.Add(time.Duration(w.Int64N(int64(700 * time.Millisecond))))
			w.appear()
			switch w.IntN(9) {
			case 0, 1, 2:
				w.create()
			case 3, 4:
				w.remove()
			case 5:
				w.kubelet()
			default:
				w.control(false)
			}
			w.judge()
		}
		w.calmDown()
		placed += w.names - w.overflow
		overflow += w.overflow
		adopted += len(w.adopted)
		moved += w.moved
	})
	for _, n := range []int{placed, overflow, adopted, moved} {
		assert.Positive(t, n)
	}
}

// calmDown lets the world come to rest.
func (w *world) calmDown() {
	for range 12 {
		w.at = w.at.Add(maxOnWay + maxLag)
		w.appear()
		for name, pod := range w.pods {
			if pod.DeletionTimestamp != nil {
				delete(w.pods, name)
			}
		}
		w.record()
		for range 3 {
			w.control(true)
		}
		w.judge()
	}
	w.at = w.at.Add(10 * time.Minute)
	for range 3 {
		w.control(true)
	}
	require.Zero(w, w.control(true), "nothing is left to do")
	for _, version := range w.versions {
		for i, e := range w.spread.Status.VersionedSubsetStatuses[version] {
			n := 0
			for _, pod := range w.pods {
				m, _ := subsets.MatchOf(pod)
				if m.Subset == e.Name && podstate.IsActive(pod) && subsets.VersionOf(pod, w.versioned()) == version {
					n++
				}
			}
			assert.EqualValues(w, n, e.Replicas, "%s %s", version, e.Name)
			assert.Empty(w, e.CreatingPods)
			assert.Empty(w, e.DeletingPods)
			assert.Equal(w, subsets.Room(w.limits()[i], &e), e.MissingReplicas)
		}
	}
}
