package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// world is a pod, its kubelet, the agent of its node or its provider, the manager of requests, and a server that
// refuses some writes for a while. The operator may be killed between any two writes, and forgets everything. It may
// see the pod as it was a while ago.
type world struct {
	*testing.T
	*rand.Rand
	pod      *corev1.Pod
	seen     *corev1.Pod // by the operator
	requests map[string]*daemon.ContainerRecreateRequest
	node     Node
	at       time.Time
	calm     bool
	refused  map[string]bool
	memory   *refusals.Tracker
	tries    simulate.Tries

	graceful map[string]bool  // sidecars that end with 0 when they are told to
	codes    map[string]int32 // with which main containers end for good
	due      time.Time        // since when all of the main containers have ended
	named    map[string]int   // requests for each sidecar
	images   map[string]int   // replacements of its image
	phases   []corev1.PodPhase
	late     bool // the kubelet may not have seen the phase
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		T: t, Rand: rand.New(rand.NewPCG(seed, seed)), requests: map[string]*daemon.ContainerRecreateRequest{}, at: gen.Epoch(),
		refused: map[string]bool{}, graceful: map[string]bool{}, codes: map[string]int32{}, named: map[string]int{}, images: map[string]int{},
	}
	w.newOperator()
	w.node = []Node{NodeReal, NodeReal, NodeVirtual}[w.IntN(3)]
	w.pod = job(policy([]corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure, corev1.RestartPolicyAlways}[w.IntN(4)]))
	w.codes["main"] = w.code()
	for i := range w.IntN(2) {
		container(fmt.Sprint("main", i))(w.pod)
		w.codes[fmt.Sprint("main", i)] = w.code()
	}
	for i := range 1 + w.IntN(3) {
		name := fmt.Sprint("side", i)
		container(name, [][]string{{stopped}, {stopped, ignored}, {stopped, replaced}, {stopped, ignored, replaced}}[w.IntN(4)]...)(w.pod)
		if w.IntN(3) == 0 {
			waits(name)(w.pod)
		}
		w.graceful[name] = w.IntN(2) == 0
	}
	if w.pod.Spec.RestartPolicy == corev1.RestartPolicyAlways && w.IntN(2) == 0 { // its main containers end all the same
		for i := range w.pod.Spec.Containers {
			if c := &w.pod.Spec.Containers[i]; !marksOf(c).sidecar() {
				c.RestartPolicy = new(corev1.ContainerRestartPolicyNever)
			}
		}
	}
	w.seen = w.pod.DeepCopy()
	return w
}

func (w *world) newOperator() { w.memory, w.tries = &refusals.Tracker{}, simulate.Tries{} }

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

func (w *world) marks(name string) marks {
	i := slices.Index(w.names(), name)
	return marksOf(&w.pod.Spec.Containers[i])
}

// change changes the pod on the server.
func (w *world) change(with func(pod *corev1.Pod)) {
	w.pod = w.pod.DeepCopy()
	with(w.pod)
	var version int
	_, err := fmt.Sscan(w.pod.ResourceVersion, &version)
	require.NoError(w, err)
	w.pod.ResourceVersion = fmt.Sprint(version + 1)
	if w.due.IsZero() && mainsEnded(w.pod) {
		w.due = w.at
	}
}

// kubelet moves a container on, or reports the phase.
func (w *world) kubelet() {
	name := w.names()[w.IntN(len(w.pod.Spec.Containers))]
	s, m := statusOf(w.pod, name), w.marks(name)
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
	case isTerminated(s) && !ended(w.pod, &w.pod.Spec.Containers[i]):
		waits(name)(w.pod)
		w.change(func(*corev1.Pod) {})
	case s.State.Running != nil && !m.sidecar() && (w.calm || w.IntN(3) == 0):
		code := w.codes[name]
		if w.odds(3) && w.pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
			code = 1
		}
		w.end(name, code)
	case s.State.Running != nil && w.node == NodeVirtual && w.pod.Spec.Containers[i].Image == "quick:1":
		w.end(name, 0)
	case w.odds(20) && s.State.Running != nil && m.sidecar():
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
		over = over && ended(w.pod, &w.pod.Spec.Containers[i])
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
		if w.graceful[c.Name] {
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

// operate is one pass.
func (w *world) operate() {
	if !w.odds(3) {
		w.seen = w.pod.DeepCopy()
	}
	p := w.compute()
	now := func() time.Time { return w.at }
	progress.Run(p.Steps, progress.InTurn(w.ask, now), progress.Options{Workload: memory.KeyOf(w.pod), Refusals: w.memory})
}

func (w *world) compute() action.Plan {
	s := given(w.seen)
	s.Node, s.Now = w.node, w.at
	s.Refusals = w.memory.For(memory.KeyOf(w.pod), refusals.Observation{Now: w.at})
	for _, name := range slices.Sorted(maps.Keys(w.requests)) {
		s.Requests = append(s.Requests, w.requests[name])
	}
	before, err := json.Marshal(s.Pod)
	require.NoError(w, err)
	p := Compute(s)
	after, err := json.Marshal(s.Pod)
	require.NoError(w, err)
	require.Equal(w, string(before), string(after))
	return p
}

func (w *world) ask(a *action.Action) progress.Outcome {
	write := string(a.Verb) + " " + simulate.KindOf(a.Object)
	switch {
	case w.odds(8):
		w.newOperator()
		return progress.OutcomeOf(simulate.ErrCrash)
	case w.refused[write]:
		require.NoError(w, w.tries.Refused(write, w.at))
		return progress.OutcomeOf(apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, a.Object.GetName(), errors.New("refused")))
	}
	w.tries.Taken(write)
	if a.Object.GetUID() == w.pod.UID && a.Object.GetResourceVersion() != w.pod.ResourceVersion {
		return progress.OutcomeOf(apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, w.pod.Name, errors.New("changed")))
	}
	if _, exists := w.requests[a.Object.GetName()]; exists && a.Verb == action.Create {
		return progress.NameTaken("create", apierrors.NewAlreadyExists(schema.GroupResource{Resource: "x"}, ""), w.requests[a.Object.GetName()], w.pod.UID)
	}
	w.write(a)
	if w.odds(10) { // the answer is lost, not the write
		return progress.OutcomeOf(apierrors.NewTimeoutError("no answer", 0))
	}
	return progress.OutcomeOf(nil)
}

// write judges and makes a write.
func (w *world) write(a *action.Action) {
	require.NotEqual(w, corev1.RestartPolicyAlways, w.pod.Spec.RestartPolicy, "I-ST-4")
	require.False(w, w.due.IsZero(), "I-ST-1: %s before all main containers have ended", a)
	switch a.Verb {
	case action.Create:
		r := a.Object.(*daemon.ContainerRecreateRequest).DeepCopy()
		r.CreationTimestamp, r.UID = metav1.NewTime(w.at), types.UID(fmt.Sprint(r.Name, w.at))
		for _, c := range r.Spec.Containers {
			m := w.marks(c.Name)
			require.True(w, m.stopped, "%s is no sidecar", c.Name)
			require.True(w, !m.ignored || len(w.phases) > 0, "I-ST-3: %s ends before the result is decided", c.Name)
			w.named[c.Name]++
			require.LessOrEqual(w, w.named[c.Name], mostRequests, "%s is asked to stop too often", c.Name)
		}
		require.Equal(w, NodeReal, w.node)
		w.requests[r.Name] = r
	case action.Delete:
		w.forget(a.Object.GetName())
	case action.UpdateInPlace:
		require.Equal(w, NodeVirtual, w.node)
		w.replace(a.Patches[0].Body)
	case action.PatchStatus:
		phase := a.Patches[0].Body["status"].(map[string]any)["phase"].(string)
		require.Equal(w, w.result(), corev1.PodPhase(phase), "I-ST-3")
		w.phases, w.late = append(w.phases, corev1.PodPhase(phase)), true
		w.change(func(pod *corev1.Pod) {
			gen.Phase(corev1.PodPhase(phase))(pod)
			if strings.Contains(fmt.Sprint(a.Patches[0].Body), "conditions") {
				decided(reasonOf(corev1.PodPhase(phase)))(pod)
			}
		})
	default:
		require.Fail(w, "unexpected", a.String())
	}
}

func (w *world) replace(body map[string]any) {
	for _, c := range body["spec"].(map[string]any)["containers"].([]any) {
		name, image := c.(map[string]any)["name"].(string), c.(map[string]any)["image"].(string)
		require.Equal(w, w.marks(name).image, image)
		w.images[name]++
		require.Equal(w, 1, w.images[name], "G2: %s has the image", name)
		w.change(gen.Image(name, image))
	}
}

// result is that of the main containers.
func (w *world) result() corev1.PodPhase {
	for _, name := range w.names() {
		if !w.marks(name).sidecar() && w.codes[name] != 0 {
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
	case n == 18 && !w.calm:
		write := []string{"Create ContainerRecreateRequest", "PatchStatus Pod", "UpdateInPlace Pod", "Delete ContainerRecreateRequest"}[w.IntN(4)]
		w.refused[write] = !w.refused[write]
	}
}

// settle lets everything come to rest.
func (w *world) settle() {
	w.calm, w.refused = true, map[string]bool{}
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
		m := w.marks(name)
		if !m.sidecar() {
			return false
		}
		if w.node == NodeVirtual {
			return m.image == ""
		}
		return !m.ignored && !w.graceful[name] && w.pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
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
		w.seen = w.pod
		p := w.compute()
		require.True(t, p.Empty() || !w.stoppable(), "G5: it wants more: %s", p.String())
	})
}
