package scenarios

import (
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

// Resizes are worlds in which nodes put resizes off for ever, can never give them, or the server refuses them.
type Resizes struct {
	// Edit changes the containers of the template. The first one asks for 1 cpu from the beginning.
	Edit func(w *simulate.World, change func(*corev1.PodSpec))
	// Last does the same once and for all, and lets pods be recreated that have waited so long, in seconds.
	Last func(w *simulate.World, deadline int32, change func(*corev1.PodSpec))
	// Given are quantities that pods get in the end, in place or by being recreated.
	Given []string
}

// Check plays the worlds, with faults and without, and demands that they arrive. Without faults a pod whose resize is put
// off serves, and none leaves service for nothing. In half of the worlds there is a second container of a higher launch priority, which is updated before the
// first one.
func (r Resizes) Check(t *testing.T, all simulate.Walk) {
	t.Helper()
	start := all.Start
	all.Count = 100
	all.Start = func(t testing.TB, seed uint64) (*simulate.World, operator.Planner) {
		t.Helper()
		w, p := start(t, seed)
		rng := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a simulation needs no secrecy
		if seed/2%2 == 0 {
			r.Edit(w, addFirstBatch)
		}
		for range 1 + rng.IntN(4) {
			ask := asking(rng, []string{"1", "2", "40", "100"})
			images := imaging(rng)
			w.EditAfter(time.Duration(rng.IntN(300))*time.Second, func() {
				r.Edit(w, func(spec *corev1.PodSpec) {
					ask(spec)
					images(spec)
				})
			})
		}
		ask := asking(rng, r.Given)
		deadline := int32(rng.IntN(90)) //nolint:gosec // no more than 90
		w.After(6*time.Minute, func() {
			w.Tell(cluster.UserActor, "asks for the last time for cpu and waits %d s for it", deadline)
			r.Last(w, deadline, ask)
		})
		return w, p
	}
	all.Faults = faultsOfOdd
	judged := all.Start
	all.Start = func(t testing.TB, seed uint64) (*simulate.World, operator.Planner) {
		t.Helper()
		w, p := judged(t, seed)
		if seed%2 == 0 {
			w.OnEvent(judgeNeedlessBreaks())
			for at := time.Minute; at < 6*time.Minute; at += 5 * time.Second {
				w.After(at, func() { judgePutOff(w) })
			}
		}
		return w, p
	}
	all.Run(t)
}

// judgeNeedlessBreaks returns the judge that no pod leaves service for an update and comes back as it was.
func judgeNeedlessBreaks() func(*simulate.World, cluster.Event) {
	left := map[types.UID]*corev1.Pod{}
	return func(w *simulate.World, e cluster.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok || e.Type != cluster.Modified {
			return
		}
		before := left[pod.UID]
		switch out := judges.IsFalse(pod, contract.InPlaceUpdateReady); {
		case out && before == nil && cluster.IsTrue(pod, corev1.PodReady): // else a hook holds it out of service
			left[pod.UID] = pod
		case !out && before != nil:
			delete(left, pod.UID)
			sameRevision := pod.Labels[contract.RevisionLabel] == before.Labels[contract.RevisionLabel]
			if sameRevision && cluster.Same(before.Spec, pod.Spec) && cluster.Same(runs(before), runs(pod)) {
				w.Violate("pod %s left service for its update and comes back as it was", pod.Name)
			}
		}
	}
}

// runs are the running processes of a pod.
func runs(pod *corev1.Pod) []string {
	var ids []string
	for i := range pod.Status.ContainerStatuses {
		ids = append(ids, pod.Status.ContainerStatuses[i].ContainerID)
	}
	return ids
}

// addFirstBatch adds a container that is updated before the others.
func addFirstBatch(spec *corev1.PodSpec) {
	main := &spec.Containers[0]
	main.Env = append(main.Env, launchPriority(1))
	spec.Containers = append(spec.Containers, corev1.Container{
		Name:      "side",
		Image:     "side:1",
		Resources: requests("1"),
		Env:       []corev1.EnvVar{launchPriority(2)},
	})
}

// asking has each container ask for one of the quantities.
func asking(rng *rand.Rand, quantities []string) func(*corev1.PodSpec) {
	first := quantities[rng.IntN(len(quantities))]
	second := quantities[rng.IntN(len(quantities))]
	return func(spec *corev1.PodSpec) {
		for i, cpu := range []string{first, second}[:len(spec.Containers)] {
			spec.Containers[i].Resources.Requests = requests(cpu).Requests
		}
	}
}

// imaging gives each container one of its images.
func imaging(rng *rand.Rand) func(*corev1.PodSpec) {
	first := []string{"app:1", "app:2", "app:3"}[rng.IntN(3)]
	second := []string{"side:1", "side:2"}[rng.IntN(2)]
	return func(spec *corev1.PodSpec) {
		for i, image := range []string{first, second}[:len(spec.Containers)] {
			spec.Containers[i].Image = image
		}
	}
}

// faultsOfOdd are all faults in every second world, and none in the others.
func faultsOfOdd(seed uint64) simulate.Faults {
	if seed%2 == 0 {
		return simulate.Faults{}
	}
	return simulate.AllFaults(seed)
}

// patienceForService is how long a pod may be out of service of which everything but a resize is done.
const patienceForService = time.Minute

// judgePutOff records pods that are kept out of service for nothing but a resize that their node puts off.
func judgePutOff(w *simulate.World) {
	for _, pod := range w.Pods() {
		if pod.DeletionTimestamp != nil || pod.Annotations[contract.InPlaceUpdateGraceAnnotation] != "" {
			continue
		}
		long := func(t corev1.PodConditionType, status corev1.ConditionStatus) bool {
			c := podstate.Condition(pod, t)
			return c != nil && c.Status == status && w.Now().Sub(c.LastTransitionTime.Time) > patienceForService
		}
		if long(corev1.PodResizePending, corev1.ConditionTrue) && long(corev1.ContainersReady, corev1.ConditionTrue) &&
			long(contract.InPlaceUpdateReady, corev1.ConditionFalse) {
			w.Violate("pod %s is kept out of service for a resize that its node puts off", pod.Name)
		}
	}
}

// Starved are worlds in which containers are killed for their memory until the template gives them enough.
type Starved struct {
	// Limit gives the container of the template so much memory; it has 256Mi from the beginning.
	Limit func(w *simulate.World, memory string)
	// Last does the same once and for all, and lets pods be recreated that cannot get it in place.
	Last func(w *simulate.World, memory string)
}

// Check plays the worlds, with faults and without, and demands that they arrive: a kubelet that starts a container with a
// higher limit leaves the pod's cgroup as it was, in which the container is killed again.
func (s Starved) Check(t *testing.T, all simulate.Walk) {
	t.Helper()
	start := all.Start
	all.Count = 100
	all.Start = func(t testing.TB, seed uint64) (*simulate.World, operator.Planner) {
		t.Helper()
		w, p := start(t, seed)
		w.Options.Memory = resource.MustParse("100Mi")
		rng := rand.New(rand.NewPCG(seed, 8)) //nolint:gosec // a simulation needs no secrecy
		for range 1 + rng.IntN(4) {
			memory := []string{"64Mi", "80Mi", "128Mi", "256Mi"}[rng.IntN(4)]
			w.EditAfter(time.Duration(rng.IntN(300))*time.Second, func() { s.Limit(w, memory) })
		}
		memory := []string{"128Mi", "256Mi", "512Mi"}[rng.IntN(3)]
		w.After(6*time.Minute, func() {
			w.Tell(cluster.UserActor, "gives %s of memory", memory)
			s.Last(w, memory)
		})
		return w, p
	}
	all.Faults = faultsOfOdd
	all.Run(t)
}
