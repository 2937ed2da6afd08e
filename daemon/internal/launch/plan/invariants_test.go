package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/retries"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	"github.com/flotilla-project/flotilla/daemon/internal/launch/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/podmarks"
)

// world is a pod, its ConfigMap, a kubelet, and a server that refuses some writes for a while, in memory.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	now     time.Time
	pod     *corev1.Pod
	m       *corev1.ConfigMap
	names   int
	once    map[string]bool // containers that were ready, or had done their work, at some time
	began   map[string]bool
	refused map[string]bool // kinds of writes
	memory  *refusals.Tracker
	tries   retries.Tries
	calm    bool      // nothing is refused any more, and nothing fails
	held    time.Time // since when something waits for refusals that have ended, zero for nothing
	// tampered is true from when somebody has taken keys away until they are there again.
	tampered bool
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, seed)), now: gen.Epoch(), refused: map[string]bool{}}
	w.newManager()
	w.replacePod()
	return w
}

// newManager is one that remembers nothing.
func (w *world) newManager() { w.memory, w.tries = &refusals.Tracker{}, retries.Tries{} }

// replacePod makes another pod of the same name. What the former left behind is still there, and may be removed.
func (w *world) replacePod() {
	w.names++
	w.refused["Delete ConfigMap"] = false
	w.once, w.began = map[string]bool{}, map[string]bool{}
	w.pod = gen.Pod("web", behind("main", w.rng.IntN(5)-2))
	for i := range w.rng.IntN(4) {
		behind(fmt.Sprintf("c%d", i), w.rng.IntN(5)-2)(w.pod)
	}
	w.pod.UID = types.UID(fmt.Sprintf("web-%d", w.names))
	for _, c := range w.pod.Spec.Containers {
		w.pod.Status.ContainerStatuses = append(w.pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name})
	}
	for w.controller(); w.m != nil && !metav1.IsControlledBy(w.m, w.pod); { // before kubelet has a sandbox
		w.controller()
	}
}

func (w *world) priority(container string) (key string, priority int) {
	for _, c := range w.pod.Spec.Containers {
		if c.Name == container {
			key = c.Env[0].ValueFrom.ConfigMapKeyRef.Key
		}
	}
	_, err := fmt.Sscanf(key, "p_%d", &priority)
	require.NoError(w.t, err)
	return key, priority
}

// controller is one pass, which may end between any two writes.
func (w *world) controller() {
	w.now = w.now.Add(time.Duration(w.rng.IntN(1500)) * time.Millisecond)
	p := plan.Compute(plan.Snapshot{
		Pod: w.pod.DeepCopy(), ConfigMap: w.m.DeepCopy(), Refusals: w.memory.For(memory.KeyOf(w.pod), refusals.Observation{Now: w.now}), Now: w.now,
	})
	w.judgeHeld(p.Deferred)
	now := func() time.Time { return w.now }
	progress.Run(p.Steps, progress.InTurn(w.ask, now), progress.Options{Workload: memory.KeyOf(w.pod), Refusals: w.memory})
}

// judgeHeld demands that what was refused is tried within a minute once it can be had.
func (w *world) judgeHeld(held []action.DeferredAction) {
	switch {
	case !w.calm || len(held) == 0:
		w.held = time.Time{}
	case w.held.IsZero():
		w.held = w.now
	default:
		require.LessOrEqual(w.t, w.now.Sub(w.held), time.Minute, "%v", held)
	}
}

// ask has the server write an action, unless the controller ends before. What is refused is tried now and then.
func (w *world) ask(a *action.Action) progress.Outcome {
	write := string(a.Verb) + " " + cluster.KindOf(a.Object)
	tried := write + " for " + string(w.pod.UID) // a pod that is made anew inherits nothing
	switch {
	case !w.calm && w.rng.IntN(10) == 0:
		w.newManager()
		return progress.OutcomeOf(operator.ErrCrash)
	case !w.refused[write]:
		w.tries.Taken(tried)
		w.write(*a)
		return progress.OutcomeOf(nil)
	}
	require.NoError(w.t, w.tries.Refused(tried, w.now))
	if w.rng.IntN(5) == 0 { // the answer is lost, not the write
		w.write(*a)
		return progress.OutcomeOf(apierrors.NewTimeoutError("no answer", 0))
	}
	return progress.OutcomeOf(apierrors.NewTooManyRequests(`admission webhook "limit" denied the request: refused`, 0))
}

func (w *world) write(a action.Action) {
	switch {
	case a.Verb == action.Create:
		require.Nil(w.t, w.m)
		w.m = a.Object.(*corev1.ConfigMap).DeepCopy()
		w.m.UID = types.UID(fmt.Sprintf("map-%d", w.rng.Int()))
	case a.Verb == action.Delete:
		require.Equal(w.t, w.m.UID, a.Object.GetUID())
		require.True(w.t, w.pod.DeletionTimestamp != nil || !metav1.IsControlledBy(w.m, w.pod), "what was made for the pod is taken away")
		w.m = nil
	case w.m != nil && a.Object.GetUID() == w.m.UID:
		w.m.Labels = map[string]string{podmarks.BarrierLabel: "true"}
		for key := range a.Patches[0].Body["data"].(map[string]any) {
			w.m.Data[key] = "true"
		}
	default:
		w.pod.Annotations = map[string]string{contract.ContainerLaunchPriorityCompletedAnnotation: "true"}
	}
}

// refuse begins to refuse one kind of write, or ends to.
func (w *world) refuse() {
	writes := []string{"Create ConfigMap", "PatchMetadata ConfigMap", "Delete ConfigMap", "PatchMetadata Pod"}
	write := writes[w.rng.IntN(len(writes))]
	w.refused[write] = !w.refused[write]
}

// kubelet moves one container on.
func (w *world) kubelet() {
	s := &w.pod.Status.ContainerStatuses[w.rng.IntN(len(w.pod.Status.ContainerStatuses))]
	switch {
	case s.State.Running == nil && (s.State.Terminated == nil || s.State.Terminated.ExitCode != 0):
		if key, _ := w.priority(s.Name); w.m != nil && w.m.Data[key] != "" {
			w.judgeStart(s.Name)
			s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		}
	case s.State.Running != nil && !s.Ready:
		switch n := w.rng.IntN(6); {
		case n == 0 && !w.calm:
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
		case n == 1:
			s.State, w.once[s.Name] = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}, true
		default:
			s.Ready, w.once[s.Name] = true, true
		}
	case s.Ready && !w.calm && w.rng.IntN(6) == 0:
		s.Ready, s.State = false, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	}
}

// complete reports whether the ConfigMap has the keys of all containers.
func (w *world) complete() bool {
	return w.m != nil && !slices.ContainsFunc(w.pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		key, _ := w.priority(s.Name)
		return w.m.Data[key] == ""
	})
}

// judgeStart is I-CLP-1: whoever starts for the first time finds all of higher priority ready, or done, before.
func (w *world) judgeStart(container string) {
	_, mine := w.priority(container)
	for _, s := range w.pod.Status.ContainerStatuses {
		if _, other := w.priority(s.Name); other > mine && !w.began[container] {
			require.True(w.t, w.once[s.Name], "%s of %d starts before %s of %d", container, mine, s.Name, other)
		}
	}
	w.began[container] = true
}

func (w *world) step() {
	switch n := w.rng.IntN(42); {
	case n < 20:
		w.kubelet()
	case n < 38:
		w.controller()
	case n == 38 && w.m != nil: // somebody deletes it, or empties it
		w.tampered = true
		if w.rng.IntN(2) == 0 {
			w.m = nil
		} else {
			clear(w.m.Data)
		}
	case n > 39:
		w.refuse()
	case w.rng.IntN(4) == 0:
		w.pod.DeletionTimestamp = new(metav1.NewTime(gen.Epoch()))
		w.controller()
		w.replacePod()
	}
}

// Highest first, whatever crashes, restarts, refusals and leftovers come in between; what is refused is tried now and
// then; all start in the end; and once the pod is marked, every container can start again without the controller.
func TestInvariants(t *testing.T) {
	seeds.Each(t, 400, func(t *testing.T, seed uint64) {
		t.Helper()
		play(t, seed, 120)
	})
}

func play(t *testing.T, seed uint64, steps int) {
	t.Helper()
	w := newWorld(t, seed)
	for range steps {
		w.step()
		w.tampered = w.tampered && !w.complete()
		if w.pod.Annotations != nil && !w.tampered {
			for _, s := range w.pod.Status.ContainerStatuses {
				key, _ := w.priority(s.Name)
				require.Contains(t, w.m.Data, key, "%s could not start again", s.Name)
			}
		}
	}
	w.calm, w.refused = true, map[string]bool{}
	for range 400 {
		w.controller()
		w.kubelet()
	}
	for _, s := range w.pod.Status.ContainerStatuses {
		require.True(t, w.began[s.Name], "%s never starts: %v", s.Name, w.m.Data)
	}
	require.NotEmpty(t, w.pod.Annotations, "the pod is never done")
	require.True(t, w.complete(), "a container that restarts never starts again")
	before := maps.Clone(w.m.Data)
	w.controller()
	require.Equal(t, before, w.m.Data)
	require.True(t, metav1.IsControlledBy(w.m, w.pod), "garbage collection must find it")
}

func FuzzInvariants(f *testing.F) {
	f.Add(uint64(1), uint16(500))
	f.Fuzz(func(t *testing.T, seed uint64, steps uint16) { play(t, seed, int(steps%3000)) })
}
