package simulate

import (
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Resizes are worlds in which nodes put resizes off for ever, can never give them, or the server refuses them.
type Resizes struct {
	// Ask has the template ask for so much cpu, with the image; it asks for 1 from the beginning.
	Ask func(w *World, cpu, image string)
	// Last does the same once and for all, and lets pods be recreated that have waited so long, in seconds.
	Last func(w *World, cpu string, deadline int32)
	// Given are quantities that pods get in the end, in place or by being recreated.
	Given []string
}

// Check plays the worlds, with faults and without, and demands that they arrive. Without faults a pod whose resize is put
// off serves.
func (r Resizes) Check(t *testing.T, all Walk) {
	t.Helper()
	start := all.Start
	all.Count = 100
	all.Start = func(t testing.TB, seed uint64) (*World, Planner) {
		t.Helper()
		w, p := start(t, seed)
		rng := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a simulation needs no secrecy
		for range 1 + rng.IntN(4) {
			cpu, image := []string{"2", "40", "100"}[rng.IntN(3)], []string{"app:1", "app:2", "app:3"}[rng.IntN(3)]
			w.EditAfter(time.Duration(rng.IntN(300))*time.Second, func() { r.Ask(w, cpu, image) })
		}
		cpu, deadline := r.Given[rng.IntN(len(r.Given))], int32(rng.IntN(90)) //nolint:gosec // no more than 90
		w.After(6*time.Minute, func() {
			w.Tell(UserActor, "asks for cpu %s and waits %d s for it", cpu, deadline)
			r.Last(w, cpu, deadline)
		})
		return w, p
	}
	all.Faults = faultsOfOdd
	judged := all.Start
	all.Start = func(t testing.TB, seed uint64) (*World, Planner) {
		t.Helper()
		w, p := judged(t, seed)
		if seed%2 == 0 {
			for at := time.Minute; at < 6*time.Minute; at += 5 * time.Second {
				w.After(at, w.judgePutOff)
			}
		}
		return w, p
	}
	all.Run(t)
}

// faultsOfOdd are all faults in every second world, and none in the others.
func faultsOfOdd(seed uint64) Faults {
	if seed%2 == 0 {
		return Faults{}
	}
	return AllFaults(seed)
}

// patienceForService is how long a pod may be out of service of which everything but a resize is done.
const patienceForService = time.Minute

// judgePutOff records pods that are kept out of service for nothing but a resize that their node puts off.
func (w *World) judgePutOff() {
	for _, pod := range w.Pods() {
		if pod.DeletionTimestamp != nil || pod.Annotations[contract.InPlaceUpdateGraceAnnotation] != "" {
			continue
		}
		long := func(t corev1.PodConditionType, status corev1.ConditionStatus) bool {
			c := podstate.Condition(pod, t)
			return c != nil && c.Status == status && w.now.Sub(c.LastTransitionTime.Time) > patienceForService
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
	Limit func(w *World, memory string)
	// Last does the same once and for all, and lets pods be recreated that cannot get it in place.
	Last func(w *World, memory string)
}

// Check plays the worlds, with faults and without, and demands that they arrive: a kubelet that starts a container with a
// higher limit leaves the pod's cgroup as it was, in which the container is killed again.
func (s Starved) Check(t *testing.T, all Walk) {
	t.Helper()
	start := all.Start
	all.Count = 100
	all.Start = func(t testing.TB, seed uint64) (*World, Planner) {
		t.Helper()
		w, p := start(t, seed)
		w.options.Memory = resource.MustParse("100Mi")
		rng := rand.New(rand.NewPCG(seed, 8)) //nolint:gosec // a simulation needs no secrecy
		for range 1 + rng.IntN(4) {
			memory := []string{"64Mi", "80Mi", "128Mi", "256Mi"}[rng.IntN(4)]
			w.EditAfter(time.Duration(rng.IntN(300))*time.Second, func() { s.Limit(w, memory) })
		}
		memory := []string{"128Mi", "256Mi", "512Mi"}[rng.IntN(3)]
		w.After(6*time.Minute, func() {
			w.Tell(UserActor, "gives %s of memory", memory)
			s.Last(w, memory)
		})
		return w, p
	}
	all.Faults = faultsOfOdd
	all.Run(t)
}
