package ordering

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

func everyIndex(pods []podstate.State) []int {
	list := make([]int, len(pods))
	for i := range list {
		list[i] = i
	}
	return list
}

func TestForUpdateDefaultOrder(t *testing.T) {
	ready := gen.Ready(after(1))
	pods := statesOf(
		gen.Pod("a", ready),
		gen.Pod("b", ready, gen.Created(after(1))),
		gen.Pod("c", ready, gen.Restarts(1)),
		gen.Pod("d", gen.Ready(after(9))),
		gen.Pod("e", ready, gen.Lifecycle(contract.LifecycleUpdated)),
		gen.Pod("f", gen.NotReady(after(1))),
		gen.Pod("g", gen.OnNode("n"), gen.Phase(corev1.PodUnknown)),
		gen.Pod("h", gen.OnNode("n")),
		gen.Pod("i", gen.Phase(corev1.PodRunning)),
		gen.Pod("j", gen.Phase(corev1.PodRunning)),
	)
	assert.Equal(t, strings.Split("i j h g f e d c b a", " "), names(pods, ForUpdate(pods, everyIndex(pods), UpdateOptions{})))
	assert.Equal(t, []string{"f", "d", "a"}, names(pods, ForUpdate(pods, []int{0, 3, 5}, UpdateOptions{})), "only those that wait")
}

func TestForUpdateKnowsNoDeletionCost(t *testing.T) {
	pods := statesOf(gen.Pod("a", gen.Ready(after(1)), gen.DeletionCost("-5")), gen.Pod("b", gen.Ready(after(2))))
	assert.Equal(t, []string{"b", "a"}, names(pods, ForUpdate(pods, everyIndex(pods), UpdateOptions{})))
}

func TestForUpdatePutsBegunUpdatesFirst(t *testing.T) {
	pods := statesOf(
		gen.Pod("a", gen.Ready(after(1)), gen.Lifecycle(contract.LifecyclePreparingUpdate)),
		gen.Pod("b"),
		gen.Pod("c", gen.Label("first", "1")),
		gen.Pod("d", gen.NotReady(after(1)), gen.Lifecycle(contract.LifecyclePreparingUpdate)),
	)
	o := UpdateOptions{Priority: orderBy("first")}
	assert.Equal(t, []string{"d", "a", "c", "b"}, names(pods, ForUpdate(pods, everyIndex(pods), o)))
}

func orderBy(keys ...string) *workload.UpdatePriorityStrategy {
	p := &workload.UpdatePriorityStrategy{}
	for _, key := range keys {
		p.OrderPriority = append(p.OrderPriority, workload.UpdatePriorityOrderTerm{OrderedKey: key})
	}
	return p
}

func weightTerm(weight int32, labels map[string]string) workload.UpdatePriorityWeightTerm {
	return workload.UpdatePriorityWeightTerm{Weight: weight, MatchSelector: metav1.LabelSelector{MatchLabels: labels}}
}

func TestOrderPriority(t *testing.T) {
	labelled := func(name string, kv ...string) *corev1.Pod {
		pod := gen.Pod(name, gen.Ready(after(1)))
		for i := 0; i < len(kv); i += 2 {
			gen.Label(kv[i], kv[i+1])(pod)
		}
		return pod
	}
	pods := statesOf(
		labelled("none"),
		labelled("a", "order", "a"),
		labelled("five", "order", "order-5"),
		labelled("ten", "order", "order-10"),
		labelled("padded", "order", "order-007"),
		labelled("huge", "order", "order-99999999999999999999999999"),
		labelled("second", "later", "x-1000"),
		labelled("both", "later", "x-1", "order", "order-6"),
	)
	want := []string{"huge", "ten", "padded", "both", "five", "a", "second", "none"}
	o := UpdateOptions{Priority: orderBy("order", "later")}
	assert.Equal(t, want, names(pods, ForUpdate(pods, everyIndex(pods), o)))

	o.UnkeyedFirst = true
	assert.Equal(t, append([]string{"none"}, want[:7]...), names(pods, ForUpdate(pods, everyIndex(pods), o)))
}

func TestUnavailablePodsComeFirstWithinAPriority(t *testing.T) {
	high := gen.Label("order", "9")
	pods := statesOf(
		gen.Pod("a", gen.Ready(after(1)), high),
		gen.Pod("b", gen.Ready(after(0)), high, gen.Lifecycle(contract.LifecycleUpdated)),
		gen.Pod("c", gen.NotReady(after(1)), high),
		gen.Pod("d"),
	)
	o := UpdateOptions{Priority: orderBy("order")}
	assert.Equal(t, []string{"c", "b", "a", "d"}, names(pods, ForUpdate(pods, everyIndex(pods), o)))
}

func TestWeightPriority(t *testing.T) {
	pods := statesOf(
		gen.Pod("none", gen.Ready(after(1))),
		gen.Pod("one", gen.Ready(after(1)), gen.Label("x", "1")),
		gen.Pod("sum", gen.Ready(after(1)), gen.Label("x", "1"), gen.Label("y", "1")),
		gen.Pod("two", gen.Ready(after(1)), gen.Label("y", "1")),
		gen.Pod("tie", gen.NotReady(after(1)), gen.Label("y", "1")),
	)
	broken := workload.UpdatePriorityWeightTerm{Weight: 100, MatchSelector: metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Like"}},
	}}
	o := UpdateOptions{Priority: &workload.UpdatePriorityStrategy{WeightPriority: []workload.UpdatePriorityWeightTerm{
		weightTerm(10, map[string]string{"x": "1"}), weightTerm(20, map[string]string{"y": "1"}), broken,
	}}}
	assert.Equal(t, []string{"sum", "tie", "two", "one", "none"}, names(pods, ForUpdate(pods, everyIndex(pods), o)))
}

func TestPriorityWithoutAMatchingRuleChangesNothing(t *testing.T) {
	pods := randomPods(rand.New(rand.NewPCG(11, 12)), 100)
	want := ForUpdate(pods, everyIndex(pods), UpdateOptions{})
	for name, p := range map[string]*workload.UpdatePriorityStrategy{
		"empty":  {},
		"order":  orderBy("absent"),
		"weight": {WeightPriority: []workload.UpdatePriorityWeightTerm{weightTerm(5, map[string]string{"absent": "1"})}},
	} {
		assert.Equal(t, want, ForUpdate(pods, everyIndex(pods), UpdateOptions{Priority: p}), name)
	}
}

func TestPriorityKeepsTheDefaultOrderAmongEquals(t *testing.T) {
	pods := randomPods(rand.New(rand.NewPCG(13, 14)), 200)
	isFirst := func(index int) bool { return pods[index].Pod.Labels["part"] == "0" }
	var first, others []int
	for _, index := range ForUpdate(pods, everyIndex(pods), UpdateOptions{}) {
		if isFirst(index) {
			first = append(first, index)
		} else {
			others = append(others, index)
		}
	}
	o := UpdateOptions{Priority: &workload.UpdatePriorityStrategy{WeightPriority: []workload.UpdatePriorityWeightTerm{weightTerm(1, map[string]string{"part": "0"})}}}
	assert.Equal(t, begunFirst(pods, append(first, others...)), ForUpdate(pods, everyIndex(pods), o))
}

func TestScatterOneTerm(t *testing.T) {
	cases := []struct {
		name    string
		pods    string // L carries the label
		waiting []int
		want    []int
	}{
		{"four plain, two labelled", "....LL", nil, []int{4, 0, 1, 2, 3, 5}},
		{"as many of both", "...LLL", nil, []int{3, 0, 1, 4, 2, 5}},
		{"six plain, three labelled", "......LLL", nil, []int{6, 0, 1, 2, 7, 3, 4, 5, 8}},
		{"more labelled than plain", "..LLLL", nil, []int{2, 3, 0, 4, 1, 5}},
		{"ten plain, three labelled", "..........LLL", nil, []int{10, 0, 1, 2, 3, 4, 11, 5, 6, 7, 8, 9, 12}},
		{"some updated before", "......LLLL", []int{2, 3, 4, 5, 8, 9}, []int{2, 3, 8, 4, 5, 9}},
		{"no group fits", "..LLLLLLLLLL", []int{0, 1, 10, 11}, []int{0, 1, 10, 11}},
		{"nobody labelled", "....", nil, []int{0, 1, 2, 3}},
		{"one labelled", "...L", nil, []int{0, 1, 2, 3}},
		{"one plain", "LLL.", nil, []int{0, 1, 2, 3}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			pods := make([]*corev1.Pod, len(c.pods))
			for i := range pods {
				pods[i] = gen.Pod(fmt.Sprintf("web-%02d", i), gen.Label("key", strings.Trim(c.pods[i:i+1], ".")))
			}
			states := statesOf(pods...)
			waiting := c.waiting
			if waiting == nil {
				waiting = everyIndex(states)
			}
			o := UpdateOptions{Scatter: workload.UpdateScatterStrategy{{Key: "key", Value: "L"}}}
			assert.Equal(t, c.want, ForUpdate(states, waiting, o))
		})
	}
}

func TestScatterWorksOffTheMostMatchedTermFirst(t *testing.T) {
	labels := []map[string]string{{}, {}, {}, {}, {"a": "1"}, {"a": "1"}, {"b": "1"}, {"b": "1"}, {"b": "1"}}
	pods := make([]*corev1.Pod, len(labels))
	for i := range pods {
		pods[i] = gen.Pod(fmt.Sprintf("web-%02d", i), gen.Labels(labels[i]))
	}
	states := statesOf(pods...)
	a, b := workload.UpdateScatterTerm{Key: "a", Value: "1"}, workload.UpdateScatterTerm{Key: "b", Value: "1"}
	only := func(order []int, term workload.UpdateScatterTerm) []int { return scatterTerm(states, order, term) }

	want := only(only(everyIndex(states), b), a)
	require.NotEqual(t, want, only(only(everyIndex(states), a), b), "the order of the terms matters here")
	for _, terms := range []workload.UpdateScatterStrategy{{a, b}, {b, a}} {
		assert.Equal(t, want, ForUpdate(states, everyIndex(states), UpdateOptions{Scatter: terms}))
	}
}

func TestScatterOfAnEmptyValueNeedsTheKey(t *testing.T) {
	pods := statesOf(gen.Pod("a"), gen.Pod("b"), gen.Pod("c", gen.Label("key", "")), gen.Pod("d", gen.Label("key", "")))
	o := UpdateOptions{Scatter: workload.UpdateScatterStrategy{{Key: "key"}}}
	assert.Equal(t, []string{"c", "a", "b", "d"}, names(pods, ForUpdate(pods, everyIndex(pods), o)))
}

// Whatever the options, the returned order has the waiting pods, each once, in an order that depends on
// the pods alone.
func TestForUpdateInvariants(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		pods := randomPods(random, 1+random.IntN(40))
		waiting := slices.DeleteFunc(everyIndex(pods), func(int) bool { return random.IntN(3) == 0 })
		o := randomOptions(random)
		order := ForUpdate(pods, waiting, o)
		require.ElementsMatch(t, waiting, order)

		mixed := shuffled(random, pods)
		place := map[string]int{}
		for i := range mixed {
			place[mixed[i].Pod.Name] = i
		}
		mixedWaiting := make([]int, len(waiting))
		for i, index := range waiting {
			mixedWaiting[i] = place[pods[index].Pod.Name]
		}
		require.Equal(t, names(pods, order), names(mixed, ForUpdate(mixed, mixedWaiting, o)))
	}
}

func randomOptions(random *rand.Rand) UpdateOptions {
	o := UpdateOptions{UnkeyedFirst: random.IntN(2) == 0}
	switch random.IntN(3) {
	case 0:
		o.Priority = orderBy("order", "app")
	case 1:
		o.Priority = &workload.UpdatePriorityStrategy{WeightPriority: []workload.UpdatePriorityWeightTerm{
			weightTerm(5, map[string]string{"part": "0"}), weightTerm(3, map[string]string{"part": "1"}),
		}}
	}
	for i := range random.IntN(3) {
		o.Scatter = append(o.Scatter, workload.UpdateScatterTerm{Key: "part", Value: fmt.Sprint(i)})
	}
	return o
}

func BenchmarkForUpdate10000(b *testing.B) {
	pods := randomPods(rand.New(rand.NewPCG(9, 10)), 10000)
	waiting := everyIndex(pods)
	scatter := workload.UpdateScatterStrategy{{Key: "part", Value: "0"}, {Key: "part", Value: "1"}}
	for name, o := range map[string]UpdateOptions{
		"default": {},
		"order":   {Priority: orderBy("order")},
		"weight":  {Priority: &workload.UpdatePriorityStrategy{WeightPriority: []workload.UpdatePriorityWeightTerm{weightTerm(5, map[string]string{"part": "0"})}}},
		"scatter": {Scatter: scatter},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				ForUpdate(pods, waiting, o)
			}
		})
	}
}
