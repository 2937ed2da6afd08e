package ordering

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

const (
	minReadySeconds = 90
	hostname        = "kubernetes.io/hostname"
)

// after is a moment some minutes after the epoch of all pods.
func after(minutes int) time.Time { return gen.Epoch().Add(time.Duration(minutes) * time.Minute) }

// statesOf returns the states of the pods, long after their creation.
func statesOf(pods ...*corev1.Pod) []podstate.State {
	states := make([]podstate.State, len(pods))
	for i, pod := range pods {
		states[i] = podstate.Of(pod, after(60), minReadySeconds)
	}
	return states
}

func names(pods []podstate.State, order []int) []string {
	list := make([]string, len(order))
	for i, index := range order {
		list[i] = pods[index].Pod.Name
	}
	return list
}

func TestForDeletionRules(t *testing.T) {
	ready := gen.Ready(after(1))
	unset := time.Time{}
	// Of each pair the pod named "z" goes first, so that the name never decides; each pair differs in
	// its rule, and in the next rule the other way round.
	cases := []struct {
		name        string
		first, then []gen.PodOption
	}{
		{"not assigned before assigned", options(gen.Phase(corev1.PodRunning)), options(gen.OnNode("n"))},
		{"pending before unknown", options(gen.OnNode("n")), options(gen.OnNode("n"), gen.Phase(corev1.PodUnknown))},
		{"unknown before running", options(gen.OnNode("n"), gen.Phase(corev1.PodUnknown), gen.DeletionCost("9")), options(gen.NotReady(after(1)))},
		{"not available before available", options(gen.Ready(after(59)), gen.DeletionCost("9")), options(ready)},
		{"lifecycle not normal before available", options(ready, gen.Lifecycle(contract.LifecycleUpdated), gen.DeletionCost("9")), options(ready)},
		{"not ready before ready and not available", options(gen.NotReady(after(1)), gen.DeletionCost("9")), options(gen.Ready(after(59)))},
		{"lower cost before higher", options(ready, gen.DeletionCost("-1")), options(gen.Ready(after(2)))},
		{"malformed costs are zero", options(ready, gen.DeletionCost("+5")), options(ready, gen.DeletionCost("1"))},
		{"ready since unknown before known", options(gen.Ready(after(9)), gen.Lifecycle(contract.LifecycleUpdated), gen.Condition(corev1.PodReady, corev1.ConditionTrue, unset)), options(gen.Ready(after(9)), gen.Lifecycle(contract.LifecycleUpdated), gen.Restarts(1))},
		{"ready for less time first", options(gen.Ready(after(9))), options(ready, gen.Restarts(1))},
		{"more restarts first", options(ready, gen.Restarts(2)), options(ready, gen.Restarts(1), gen.Created(after(1)))},
		{"restarts decide among pods not ready, not their time", options(gen.NotReady(after(1)), gen.Restarts(2)), options(gen.NotReady(after(9)))},
		{"created at an unknown time first", options(ready, gen.Created(unset)), options(ready)},
		{"newer before older", options(ready, gen.Created(after(1))), options(ready)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			first, then := gen.Pod("z", c.first...), gen.Pod("a", c.then...)
			pods := statesOf(then, first)
			assert.Equal(t, []string{"z", "a"}, names(pods, ForDeletion(pods, nil)))
			pods = statesOf(first, then)
			assert.Equal(t, []string{"z", "a"}, names(pods, ForDeletion(pods, nil)))
		})
	}
}

func options(list ...gen.PodOption) []gen.PodOption { return list }

func TestForDeletionRankStandsBetweenCostAndHistory(t *testing.T) {
	pods := statesOf(
		gen.Pod("a", gen.Ready(after(9))),
		gen.Pod("b", gen.Ready(after(1))),
		gen.Pod("c", gen.Ready(after(1)), gen.DeletionCost("-1")),
	)
	assert.Equal(t, []string{"c", "b", "a"}, names(pods, ForDeletion(pods, []float64{0, 1, 0})))
	assert.Equal(t, []string{"c", "a", "b"}, names(pods, ForDeletion(pods, nil)))
}

func TestForDeletionEndsWithTheName(t *testing.T) {
	pods := statesOf(gen.Pod("c"), gen.Pod("a"), gen.Pod("b"))
	assert.Equal(t, []string{"a", "b", "c"}, names(pods, ForDeletion(pods, nil)))
}

func TestSameNodeRanks(t *testing.T) {
	pods := statesOf(
		gen.Pod("a", gen.OnNode("n1"), gen.Ready(after(1))),
		gen.Pod("b", gen.OnNode("n1"), gen.Ready(after(3))),
		gen.Pod("c", gen.OnNode("n1"), gen.Ready(after(2))),
		gen.Pod("d", gen.OnNode("n2"), gen.Ready(after(9))),
		gen.Pod("e"),
		gen.Pod("f"),
	)
	assert.Equal(t, []float64{0, 2, 1, 0, 0, 0}, SameNodeRanks(pods, nil))
}

// zones is six pods in zones of three, two and one, each on a node of its own.
// What stays counts where it is: with two pods on n2 the one that may go from there comes first.
func TestRanksCountWhatStays(t *testing.T) {
	on := func(node string) *corev1.Pod { return gen.Pod("web-"+node, gen.OnNode(node), gen.Ready(after(1))) }
	pods, others := statesOf(on("n1"), on("n2"), gen.Pod("e")), statesOf(on("n2"), on("n3"))
	assert.Equal(t, []float64{0, 1, 0}, SameNodeRanks(pods, others))
	labels := func(node string) map[string]string { return map[string]string{hostname: node} }
	assert.InDeltaSlice(t, []float64{math.Log(5), 2 * math.Log(5), 0}, SpreadRanks(pods, others, []SpreadConstraint{{TopologyKey: hostname}}, labels), 1e-9)
}

func zones() (pods []podstate.State, nodeLabels func(string) map[string]string) {
	var list []*corev1.Pod
	for i, zone := range []string{"a", "a", "a", "b", "b", "c"} {
		name := fmt.Sprintf("%s%d", zone, i)
		list = append(list, gen.Pod(name, gen.OnNode(zone+"-"+name), gen.Ready(after(i))))
	}
	return statesOf(list...), func(node string) map[string]string {
		return map[string]string{"zone": node[:1], hostname: node}
	}
}

func TestSpreadRanksEvenOutZones(t *testing.T) {
	pods, nodeLabels := zones()
	ranks := SpreadRanks(pods, nil, []SpreadConstraint{{TopologyKey: "zone"}}, nodeLabels)
	ln5 := math.Log(5)
	want := []float64{1 * ln5, 2 * ln5, 3 * ln5, 1 * ln5, 2 * ln5, 1 * ln5}
	assert.InDeltaSlice(t, want, ranks, 1e-9, "the pods ready for less time go first in their zone")

	order := names(pods, ForDeletion(pods, ranks))
	assert.Equal(t, []string{"a2", "b4", "a1"}, order[:3], "of the tie, the pod ready for less time")
	left := map[byte]int{}
	for _, name := range order[3:] {
		left[name[0]]++
	}
	assert.Equal(t, map[byte]int{'a': 1, 'b': 1, 'c': 1}, left)
}

func TestSpreadRanksAddUpOverConstraints(t *testing.T) {
	pods, nodeLabels := zones()
	ranks := SpreadRanks(pods, nil, []SpreadConstraint{{TopologyKey: "zone"}, {TopologyKey: hostname}}, nodeLabels)
	assert.InDelta(t, 3*math.Log(5)+math.Log(8), ranks[2], 1e-9)
	assert.InDelta(t, math.Log(5)+math.Log(8), ranks[5], 1e-9)
}

func TestSpreadRanksSpreadOverNodesInsideAZone(t *testing.T) {
	pods := statesOf(
		gen.Pod("a", gen.OnNode("n1"), gen.Ready(after(1))),
		gen.Pod("b", gen.OnNode("n1"), gen.Ready(after(2))),
		gen.Pod("c", gen.OnNode("n2"), gen.Ready(after(3))),
	)
	zone := func(string) map[string]string { return map[string]string{"zone": "z"} }
	ranks := SpreadRanks(pods, nil, []SpreadConstraint{{TopologyKey: "zone"}}, zone)
	assert.Equal(t, []string{"b", "c", "a"}, names(pods, ForDeletion(pods, ranks)))
}

func TestSpreadRanksSkipPodsOutsideTheConstraint(t *testing.T) {
	pods := statesOf(
		gen.Pod("a", gen.OnNode("in")),
		gen.Pod("b", gen.OnNode("other")),
		gen.Pod("c", gen.OnNode("unlabelled")),
		gen.Pod("d", gen.OnNode("unknown")),
		gen.Pod("e"),
	)
	nodes := map[string]map[string]string{"in": {"zone": "z1"}, "other": {"zone": "z2"}, "unlabelled": {"disk": "ssd"}}
	nodeLabels := func(node string) map[string]string {
		require.NotEmpty(t, node)
		return nodes[node]
	}
	all := SpreadRanks(pods, nil, []SpreadConstraint{{TopologyKey: "zone"}}, nodeLabels)
	assert.InDeltaSlice(t, []float64{math.Log(4), math.Log(4), 0, 0, 0}, all, 1e-9)
	limited := SpreadRanks(pods, nil, []SpreadConstraint{{TopologyKey: "zone", LimitedValues: []string{"z1"}}}, nodeLabels)
	assert.InDeltaSlice(t, []float64{math.Log(3), 0, 0, 0, 0}, limited, 1e-9)
}

func TestSpreadRanksAskOncePerNode(t *testing.T) {
	pods := statesOf(gen.Pod("a", gen.OnNode("n")), gen.Pod("b", gen.OnNode("n")), gen.Pod("c", gen.OnNode("gone")), gen.Pod("d", gen.OnNode("gone")))
	asked := map[string]int{}
	SpreadRanks(pods, nil, []SpreadConstraint{{TopologyKey: "zone"}}, func(node string) map[string]string {
		asked[node]++
		return map[string]map[string]string{"n": {"zone": "z"}}[node]
	})
	assert.Equal(t, map[string]int{"n": 1, "gone": 1}, asked)
}

// randomPods is n pods that differ in everything that the rules read, with many ties.
func randomPods(random *rand.Rand, n int) []podstate.State {
	phases := []corev1.PodPhase{corev1.PodPending, corev1.PodUnknown, corev1.PodRunning, corev1.PodRunning}
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		list := options(
			gen.Created(after(random.IntN(3))),
			gen.Labels(map[string]string{"app": "web", "part": fmt.Sprint(random.IntN(3)), "order": fmt.Sprintf("o-%d", random.IntN(20))}),
		)
		if random.IntN(10) > 0 {
			list = append(list, gen.OnNode(fmt.Sprintf("n%d", random.IntN(1+n/3))))
		}
		if random.IntN(4) > 0 {
			list = append(list, gen.Ready(after(random.IntN(60))), gen.Restarts(random.Int32N(3)))
		} else {
			list = append(list, gen.Phase(phases[random.IntN(len(phases))]))
		}
		if random.IntN(5) == 0 {
			list = append(list, gen.DeletionCost(fmt.Sprint(random.IntN(3)-1)))
		}
		if random.IntN(9) == 0 {
			list = append(list, gen.Lifecycle(contract.LifecyclePreparingUpdate))
		}
		pods[i] = gen.Pod(fmt.Sprintf("web-%05d", i), list...)
	}
	return statesOf(pods...)
}

func shuffled(random *rand.Rand, pods []podstate.State) []podstate.State {
	mixed := make([]podstate.State, len(pods))
	for to, from := range random.Perm(len(pods)) {
		mixed[to] = pods[from]
	}
	return mixed
}

func TestForDeletionDoesNotDependOnTheInputOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		pods := randomPods(random, 1+random.IntN(30))
		mixed := shuffled(random, pods)
		nodeLabels := func(node string) map[string]string { return map[string]string{"zone": node[len(node)-1:]} }
		spread := []SpreadConstraint{{TopologyKey: "zone"}}
		require.Equal(t, names(pods, ForDeletion(pods, SameNodeRanks(pods, nil))), names(mixed, ForDeletion(mixed, SameNodeRanks(mixed, nil))))
		require.Equal(t, names(pods, ForDeletion(pods, SpreadRanks(pods, nil, spread, nodeLabels))),
			names(mixed, ForDeletion(mixed, SpreadRanks(mixed, nil, spread, nodeLabels))))
	}
}

func BenchmarkForDeletion10000(b *testing.B) {
	pods := randomPods(rand.New(rand.NewPCG(5, 6)), 10000)
	nodeLabels := func(node string) map[string]string { return map[string]string{"zone": node[len(node)-1:]} }
	b.Run("same node", func(b *testing.B) {
		for b.Loop() {
			ForDeletion(pods, SameNodeRanks(pods, nil))
		}
	})
	b.Run("spread", func(b *testing.B) {
		constraints := []SpreadConstraint{{TopologyKey: "zone"}, {TopologyKey: hostname}}
		for b.Loop() {
			ForDeletion(pods, SpreadRanks(pods, nil, constraints, nodeLabels))
		}
	})
}
