package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// zoned makes the nodes of a world objects, each in a zone of its own.
func zoned(w *simulate.World) {
	w.AddNodes(3)
	for _, node := range w.Nodes() {
		w.EditNode(cluster.CloudActor, node.Name, func(n *corev1.Node) {
			n.Labels["zone"] = strings.Replace(n.Name, "node", "zone", 1)
		})
	}
}

// overZones spreads pods over zones.
func overZones(s *v1beta1.CloneSet) {
	s.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: "zone"}}
}

// Wherever the scheduler has put the pods, the ones that are left after a scale-in are spread over the zones as evenly as
// they can be.
func TestScalingInEvensOutTheZones(t *testing.T) {
	for seed := range uint64(5) {
		w, p := play(t, cluster.Options{Seed: seed}, 9, overZones)
		zoned(w)
		simulate.Settle(t, w, p, 500)
		before := podsOfZones(w)
		edit(w, replicas(4))
		simulate.Settle(t, w, p, 500)
		after := podsOfZones(w)
		limit := evened(before, 4)
		assert.LessOrEqual(t, slices.Max(after), limit, "%v to %v, the story:\n%s", before, after, w.Story())
	}
}

// In the middle of a rollout the pods of both revisions share the zones.
func TestScalingInEvensOutTheZonesOfBothRevisions(t *testing.T) {
	w := given(t, 5, partition("2"), overZones).old(1, gen.OnNode("a")).old(2, gen.OnNode("b")).updated(3, gen.OnNode("a"))
	s := w.snapshot()
	s.NodeLabels = func(node string) map[string]string { return map[string]string{"zone": node} }
	var from []string
	for a := range judges.Actions(Compute(s).Steps, stepScale) {
		from = append(from, a.Object.(*corev1.Pod).Spec.NodeName)
	}
	assert.Equal(t, []string{"a"}, from, "of the old pods more are in b, of all pods in a")
}

// podsOfZones counts the active pods of each zone.
func podsOfZones(w *simulate.World) []int {
	counts := make([]int, len(w.Nodes()))
	for i, node := range w.Nodes() {
		for _, pod := range activePods(w) {
			if pod.Spec.NodeName == node.Name {
				counts[i]++
			}
		}
	}
	return counts
}

// evened is how many pods the fullest of the zones has at least when n are left.
func evened(zones []int, n int) int {
	left := slices.Clone(zones)
	for total := 9; total > n; total-- {
		i := slices.Index(left, slices.Max(left))
		left[i]--
	}
	return slices.Max(left)
}
