package plan

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// asks lets the template ask for so much cpu.
func asks(cpu string) setOption {
	return func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

// resizes is a vertical autoscaler that gives a running pod at random more cpu.
func resizes(w *simulate.World, rng *rand.Rand) {
	if pods := activePods(w); len(pods) > 0 {
		resize(w, pods[rng.IntN(len(pods))], resource.MustParse([]string{"2", "3", "4"}[rng.IntN(3)]))
	}
}

// resize changes what a container asks for in the way of a vertical autoscaler. One that asks for
// nothing cannot begin to.
func resize(w *simulate.World, pod *corev1.Pod, cpu resource.Quantity) {
	w.Tell("foreign", "resize pod %s to %s", pod.Name, cpu.String())
	_ = cluster.Change(w, cluster.UserActor, "resize", pod, func(o *corev1.Pod) {
		o.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: cpu}
	})
}

// evicts deletes a pod at random, as an eviction does.
var evicts = simulate.DeletesPods

func cpus(w *simulate.World) []string {
	var all []string
	for _, o := range activePods(w) {
		all = append(all, o.Spec.Containers[0].Resources.Requests.Cpu().String())
	}
	return all
}

// 616: what a vertical autoscaler gives to pods is theirs. The set writes nothing about it, updates their
// image as ever, and has its way only with what its user changes.
func TestResizesOfAnAutoscalerAreNotFought(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 8}, 3, policy(v1beta1.InPlaceIfPossible), asks("1"))
	simulate.Settle(t, w, p, 500)
	before, written := identities(w), w.Writes(cluster.OperatorActor)
	for _, o := range activePods(w) {
		resize(w, o, resource.MustParse("3"))
	}
	simulate.Settle(t, w, p, 500)
	assert.Equal(t, []string{"3", "3", "3"}, cpus(w))
	for _, o := range activePods(w) {
		assert.Equal(t, contract.LifecycleNormal, o.Labels[contract.LifecycleStateLabel])
	}
	assert.Equal(t, written, w.Writes(cluster.OperatorActor), "the story:\n%s", w.Story())

	edit(w, image("app:2"))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	assert.Equal(t, []string{"3", "3", "3"}, cpus(w))
	edit(w, asks("2"))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	assert.Equal(t, []string{"2", "2", "2"}, cpus(w))

	resize(w, activePods(w)[0], resource.MustParse("100")) // more than a node has
	simulate.Settle(t, w, p, 500)
	edit(w, image("app:3"))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	assert.Equal(t, before, identities(w))
}

// Vertical and horizontal autoscalers act all the time, whatever else goes on and goes wrong, and the set
// arrives all the same.
func TestAutoscalersEverywhereKeepTheInvariants(t *testing.T) {
	t.Parallel()
	simulate.Walk{
		Count: 200,
		Faults: func(seed uint64) simulate.Faults {
			f := simulate.AllFaults(seed)
			f.Passes, f.Foreign, f.Actors = 60, 0.3, []simulate.Actor{resizes, resizes, evicts, flapsReplicas}
			return f
		},
		Unarrived: unarrived,
		Start: func(t testing.TB, seed uint64) (*simulate.World, operator.Planner) {
			t.Helper()
			return walk(t, seed, asks("1")) // from the start: no pod can begin to ask in place
		},
		Describe: func(w *simulate.World) string { return describeSpec(present(w)) },
	}.Run(t)
}
