package sidecarterminator

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/retries"
	"github.com/flotilla-project/flotilla/core/testing/seeds"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// world is a pod, its kubelet, the agent of its node or its provider, the manager of requests, and a server that
// refuses some writes for a while. The operator may be killed between any two writes, and forgets everything. Its caches
// may show the pod and its requests as they were a while ago, have yet to fill, or lack the node; it may have to wait for
// the kind of requests.
type world struct {
	*testing.T
	*rand.Rand
	pod      *corev1.Pod
	requests map[string]*daemon.ContainerRecreateRequest
	others   []client.Object // that the operator must leave alone
	virtual  bool            // the node
	at       time.Time
	calm     bool
	refused  map[string]bool

	seen     *corev1.Pod                                 // by the operator
	asked    map[string]*daemon.ContainerRecreateRequest // as the operator sees them
	nodeless bool                                        // so far as the operator sees
	caches   *caches
	passes   *passes
	said     map[string]bool // notices of this operator
	memory   *refusals.Tracker
	tries    retries.Tries

	sidecars map[string]sidecar
	codes    map[string]int32 // with which main containers end for good
	due      time.Time        // since when all of the main containers have ended
	named    map[string]int   // requests for each sidecar
	images   map[string]int   // replacements of its image
	phases   []corev1.PodPhase
	late     bool // the kubelet may not have seen the phase
}

// sidecar is how a sidecar is marked, and whether it ends with 0 when it is told to.
type sidecar struct{ stopped, ignored, replaced, graceful bool }

// mostRequests is how often a sidecar is asked to stop.
const mostRequests = 5

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		T: t, Rand: rand.New(rand.NewPCG(seed, seed)), requests: map[string]*daemon.ContainerRecreateRequest{}, at: gen.Epoch(),
		refused: map[string]bool{}, sidecars: map[string]sidecar{}, codes: map[string]int32{}, named: map[string]int{}, images: map[string]int{},
	}
	w.virtual = w.IntN(3) == 0
	w.pod = gen.Pod("job", gen.OnNode(gen.Node), gen.Phase(corev1.PodRunning))
	w.pod.Spec.Containers, w.pod.Spec.TerminationGracePeriodSeconds = nil, new(int64(20))
	w.pod.Spec.RestartPolicy = []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure, corev1.RestartPolicyAlways}[w.IntN(4)]
	w.pod.Status.ContainerStatuses = nil
	w.addContainer("main", sidecar{})
	for i := range w.IntN(2) {
		w.addContainer(fmt.Sprint("main", i), sidecar{})
	}
	for i := range 1 + w.IntN(3) {
		m := []sidecar{{stopped: true}, {stopped: true, ignored: true}, {stopped: true, replaced: true}, {stopped: true, ignored: true, replaced: true}}[w.IntN(4)]
		m.graceful = w.IntN(2) == 0
		name := fmt.Sprint("side", i)
		w.addContainer(name, m)
		if w.IntN(3) == 0 {
			waits(name)(w.pod)
		}
	}
	if w.pod.Spec.RestartPolicy == corev1.RestartPolicyAlways && w.IntN(2) == 0 { // its main containers end all the same
		for i := range w.pod.Spec.Containers {
			if c := &w.pod.Spec.Containers[i]; !w.isSidecar(c.Name) {
				c.RestartPolicy = new(corev1.ContainerRestartPolicyNever)
			}
		}
	}
	w.others = w.newOthers()
	w.newOperator()
	return w
}

// addContainer adds a container that runs, with the marks of a sidecar.
func (w *world) addContainer(name string, m sidecar) {
	c := corev1.Container{Name: name, Image: name + ":1"}
	mark := func(is bool, name, value string) {
		if is {
			c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
		}
	}
	mark(m.stopped, v1beta1.TerminateSidecarEnv, "true")
	mark(m.ignored, v1beta1.IgnoreSidecarExitCodeEnv, "true")
	mark(m.replaced, v1beta1.TerminateSidecarImageEnv, "quick:1")
	if m.stopped {
		w.sidecars[name] = m
	} else {
		w.codes[name] = w.code()
	}
	w.pod.Spec.Containers = append(w.pod.Spec.Containers, c)
	w.pod.Status.ContainerStatuses = append(w.pod.Status.ContainerStatuses, corev1.ContainerStatus{
		Name: name, ContainerID: "containerd://" + name + "-1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	})
}

func (w *world) isSidecar(name string) bool { return w.sidecars[name].stopped }

// code is one with which a main container ends: with OnFailure the last one is 0.
func (w *world) code() int32 {
	if w.pod.Spec.RestartPolicy == corev1.RestartPolicyNever && w.IntN(3) == 0 {
		return 1
	}
	return 0
}

func (w *world) odds(n int) bool { return !w.calm && w.IntN(n) == 0 }

func (w *world) names() []string {
	var names []string
	for i := range w.pod.Spec.Containers {
		names = append(names, w.pod.Spec.Containers[i].Name)
	}
	return names
}

// change changes the pod on the server.
func (w *world) change(with func(pod *corev1.Pod)) {
	w.pod = w.pod.DeepCopy()
	with(w.pod)
	var version int
	_, err := fmt.Sscan(w.pod.ResourceVersion, &version)
	require.NoError(w, err)
	w.pod.ResourceVersion = fmt.Sprint(version + 1)
	if w.due.IsZero() && w.mainsEnded() {
		w.due = w.at
	}
}

// kubelet moves a container on, or reports the phase.
func (w *world) kubelet() {
	name := w.names()[w.IntN(len(w.pod.Spec.Containers))]
	s, isSidecar := statusOf(w.pod, name), w.isSidecar(name)
	i := slices.Index(w.names(), name)
	switch {
	case final(w.pod.Status.Phase) && w.IntN(4) == 0 && !isTerminated(s): // the kubelet ends what is left of a pod that is over
		w.end(name, 137)
	case s.State.Waiting != nil && !final(w.pod.Status.Phase):
		w.change(func(pod *corev1.Pod) {
			at := statusOf(pod, name)
			at.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			at.RestartCount++
			at.ContainerID = fmt.Sprintf("containerd://%s-%d", name, at.RestartCount)
		})
	case isTerminated(s) && !w.ended(&w.pod.Spec.Containers[i]):
		waits(name)(w.pod)
		w.change(func(*corev1.Pod) {})
	case s.State.Running != nil && !isSidecar && (w.calm || w.IntN(3) == 0):
		code := w.codes[name]
		if w.odds(3) && w.pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
			code = 1
		}
		w.end(name, code)
	case s.State.Running != nil && w.virtual && w.pod.Spec.Containers[i].Image == "quick:1":
		w.end(name, 0)
	case w.odds(20) && s.State.Running != nil && isSidecar:
		w.end(name, 1) // by itself
	}
	w.report()
}

func (w *world) end(name string, code int32) { w.change(exits(name, code)) }

// report is the kubelet's phase. A report that was on its way may overwrite the one that was decided; the kubelet,
// which then has seen that, does not conclude another one before the operator has set it again.
func (w *world) report() {
	over := true
	phase := corev1.PodSucceeded
	for i := range w.pod.Spec.Containers {
		s := statusOf(w.pod, w.pod.Spec.Containers[i].Name)
		over = over && w.ended(&w.pod.Spec.Containers[i])
		if over && s.State.Terminated.ExitCode != 0 {
			phase = corev1.PodFailed
		}
	}
	switch {
	case over && !final(w.pod.Status.Phase) && len(w.phases) == 0:
		w.change(gen.Phase(phase))
	case w.late && w.odds(3):
		w.change(gen.Phase(corev1.PodRunning))
	}
	w.late = false
}

// agent carries out the oldest request, or is away.
func (w *world) agent() {
	for _, name := range slices.Sorted(maps.Keys(w.requests)) {
		r := w.requests[name].DeepCopy()
		if r.Status.Phase == daemon.RecreateCompleted {
			continue
		}
		w.requests[name] = r
		if w.odds(6) {
			r.Status = daemon.ContainerRecreateRequestStatus{
				Phase: daemon.RecreateCompleted, CompletionTime: new(metav1.NewTime(w.at)), Message: "daemon has not responded for a long time",
			}
			return
		}
		w.carryOut(r)
		return
	}
}

func (w *world) carryOut(r *daemon.ContainerRecreateRequest) {
	r.Status.Phase = daemon.RecreateRecreating
	for _, c := range r.Spec.Containers {
		killed := slices.ContainsFunc(r.Status.ContainerRecreateStates, func(s daemon.ContainerRecreateState) bool { return s.Name == c.Name })
		if killed || !isRunning(statusOf(w.pod, c.Name)) {
			continue
		}
		r.Status.ContainerRecreateStates = append(r.Status.ContainerRecreateStates, daemon.ContainerRecreateState{Name: c.Name, IsKilled: true})
		code := int32(143)
		if w.sidecars[c.Name].graceful {
			code = 0
		}
		w.end(c.Name, code)
		return
	}
	again := !slices.ContainsFunc(r.Spec.Containers, func(c daemon.ContainerToRecreate) bool { return !isRunning(statusOf(w.pod, c.Name)) })
	if again || final(w.pod.Status.Phase) {
		r.Status.Phase, r.Status.CompletionTime = daemon.RecreateCompleted, new(metav1.NewTime(w.at))
	}
}

// collect deletes requests whose time is over, and sometimes one by hand.
func (w *world) collect() {
	for name, r := range w.requests {
		over := r.Status.CompletionTime != nil && r.Spec.TTLSecondsAfterFinished != nil &&
			w.at.Sub(r.Status.CompletionTime.Time) >= time.Duration(*r.Spec.TTLSecondsAfterFinished)*time.Second
		if over || w.odds(60) {
			w.forget(name)
		}
	}
}

// forget deletes a request, which counts no more: how often a sidecar was stopped is read from the requests that there are.
func (w *world) forget(name string) {
	for _, c := range w.requests[name].Spec.Containers {
		w.named[c.Name]--
	}
	delete(w.requests, name)
}

// result is that of the main containers.
func (w *world) result() corev1.PodPhase {
	for _, name := range w.names() {
		if !w.isSidecar(name) && w.codes[name] != 0 {
			return corev1.PodFailed
		}
	}
	return corev1.PodSucceeded
}

func (w *world) step() {
	w.at = w.at.Add(time.Duration(w.IntN(3000)) * time.Millisecond)
	switch n := w.IntN(20); {
	case n < 7:
		w.kubelet()
	case n < 13:
		w.operate()
	case n < 17:
		w.agent()
	case n == 17:
		w.collect()
	case n == 19:
		w.nodeless = w.IntN(4) == 0
	case n == 18:
		write := []string{"Create ContainerRecreateRequest", "PatchStatus Pod", "UpdateInPlace Pod", "Delete ContainerRecreateRequest"}[w.IntN(4)]
		w.refused[write] = !w.refused[write]
	}
}

// settle lets everything come to rest.
func (w *world) settle() {
	w.calm, w.nodeless, w.refused = true, false, map[string]bool{}
	for range 600 {
		w.at = w.at.Add(4 * time.Second)
		w.kubelet()
		w.operate()
		w.agent()
		w.collect()
	}
}

// stoppable reports whether the pod comes to an end: all of its sidecars can be stopped for good.
func (w *world) stoppable() bool {
	return !slices.ContainsFunc(w.names(), func(name string) bool {
		m := w.sidecars[name]
		if !m.stopped {
			return false
		}
		if w.virtual {
			return !m.replaced
		}
		return !m.ignored && !m.graceful && w.pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
	})
}

func TestRandomWorldsKeepTheInvariants(t *testing.T) {
	seeds.Each(t, 300, func(t *testing.T, seed uint64) {
		t.Helper()
		w := newWorld(t, seed)
		for range 200 {
			w.step()
		}
		w.settle()
		if w.pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
			require.Empty(t, w.requests)
			return
		}
		if w.stoppable() {
			require.True(t, final(w.pod.Status.Phase), "I-ST-2: the pod goes on: %v", w.pod.Status)
			for _, name := range w.names() {
				require.True(t, isTerminated(statusOf(w.pod, name)), "I-ST-2: %s runs on", name)
			}
		}
		if len(w.phases) > 0 {
			require.Equal(t, w.result(), w.pod.Status.Phase, "I-ST-3")
		}
		if pass, goesOn := w.look(); goesOn {
			require.True(t, pass.Plan.Empty() || !w.stoppable(), "G5: it wants more: %s", pass.Plan.String())
		}
	})
}
