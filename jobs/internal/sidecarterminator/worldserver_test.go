package sidecarterminator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/nodes"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/informers"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/retries"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/sidecarterminator/plan"
)

var errFilling = errors.New("the cache has yet to fill")

// worldClock is the clock of passes.
type worldClock struct{ *world }

func (c worldClock) Now() time.Time                  { return c.at }
func (c worldClock) Since(t time.Time) time.Duration { return c.at.Sub(t) }

// caches are those of an operator.
type caches struct {
	*informers.Cache
	filling string // the kind that has yet to fill

	pod      *corev1.Pod // that is shown, with its requests
	requests map[string]*daemon.ContainerRecreateRequest
	nodeless bool
}

// GetInformer is part of cache.Cache.
func (c *caches) GetInformer(ctx context.Context, kind client.Object, o ...cache.InformerGetOption) (cache.Informer, error) {
	if c.filling == cluster.KindOf(kind) {
		return nil, errFilling
	}
	return c.Cache.GetInformer(ctx, kind, o...)
}

// newOperator starts an operator, which may have to wait for the kind of requests.
func (w *world) newOperator() {
	w.seen, w.asked = w.pod, maps.Clone(w.requests)
	w.begin(!w.odds(4))
}

// begin starts the controller, which remembers nothing.
func (w *world) begin(served bool) {
	settings := fastclient.CacheOptions("", map[client.Object]cache.ByObject{&corev1.Pod{}: Pods(""), &corev1.Node{}: nodes.CachedWithAllocatable()})
	w.caches = &caches{Cache: informers.New(cluster.New(cluster.Options{}), settings)}
	if w.odds(4) {
		w.caches.filling = []string{"Pod", "Node", daemon.ContainerRecreateRequestKind}[w.IntN(3)]
	}
	require.NoError(w, fastclient.IndexOwners(w.Context(), w.caches, &daemon.ContainerRecreateRequest{}))
	reader, tracker := fastclient.NewReader(w.caches, runtime.NewScheme(), fastclient.Options{}), &refusals.Tracker{}
	w.memory, w.tries, w.said = tracker, retries.Tries{}, map[string]bool{}
	w.passes = &passes{
		Reader: reader, Nodes: reader, Clock: worldClock{w}, Served: served,
		Refusals: func(of client.Object, now time.Time) action.Refusals {
			return tracker.For(memory.KeyOf(of), refusals.Observation{Now: now, Generation: of.GetGeneration()})
		},
	}
}

// newOthers returns requests that are none for the pod: one that only refers to it, one of another namespace that claims
// to be controlled by it, and one for a former pod of its name. All of them would hold up those for the pod. There are a
// pod of its name in another namespace, too, and a node of the other kind.
func (w *world) newOthers() []client.Object {
	twin := gen.Pod("job", gen.OnNode("another"), gen.Phase(corev1.PodRunning))
	twin.Namespace, twin.UID = "other", "twin"
	all := []client.Object{twin, newNode("another", !w.virtual)}
	for _, of := range []struct {
		namespace, name string
		uid             types.UID
		controller      bool
	}{
		{w.pod.Namespace, plan.RequestName(w.pod, "", mostRequests), w.pod.UID, false}, {"other", plan.RequestName(w.pod, "", 1), w.pod.UID, true},
		{w.pod.Namespace, plan.RequestName(twin, "", 1), "former", true},
	} {
		r := &daemon.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
			Namespace: of.namespace, Name: of.name, UID: types.UID(of.namespace + of.name), ResourceVersion: "1",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "job", UID: of.uid, Controller: &of.controller}},
		}}
		for _, name := range w.names() {
			r.Spec.Containers = append(r.Spec.Containers, daemon.ContainerToRecreate{Name: name})
		}
		all = append(all, r)
	}
	return all
}

func newNode(name string, virtual bool) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1", Labels: map[string]string{"zone": "a"}}}
	if virtual {
		node.Labels[daemon.NodeTypeLabel] = daemon.VirtualKubelet
	}
	return node
}

// operate is one pass.
func (w *world) operate() {
	if !w.passes.Served && (w.calm || w.IntN(4) == 0) {
		w.begin(true) // requests are served and may be made by now
	}
	if made, goesOn := w.look(); goesOn {
		now := func() time.Time { return w.at }
		progress.Run(made.Plan.Steps, progress.InTurn(w.ask, now), progress.Options{Workload: memory.KeyOf(w.pod), Refusals: w.memory})
	}
}

// look has the caches show the pod and its requests, and plans. It is false where there is nothing to plan.
func (w *world) look() (pass.Pass, bool) {
	if !w.odds(3) {
		w.seen = w.pod
	}
	if !w.odds(3) {
		w.asked = maps.Clone(w.requests)
	}
	w.show()
	made, err := w.passes.Look(w.Context(), client.ObjectKeyFromObject(w.pod))
	if errors.Is(err, errFilling) {
		w.caches.filling = ""
		return pass.Pass{}, false
	}
	if apierrors.IsNotFound(err) {
		require.Equal(w, corev1.RestartPolicyAlways, w.pod.Spec.RestartPolicy, "a pod with sidecars is left out")
		return pass.Pass{}, false
	}
	require.NoError(w, err)
	require.NotEqual(w, "Pod", w.caches.filling, "a pod that is not cached")
	if w.caches.filling == daemon.ContainerRecreateRequestKind {
		require.NotContains(w, made.Plan.String(), "Create", "requests are made while those that there are cannot be read")
	}
	require.Equal(w, w.pod.UID, made.Object.GetUID())
	for _, n := range made.Plan.Notices {
		require.False(w, w.said[n.Reason+n.Note], "it is said again: %s", n.Note)
		w.said[n.Reason+n.Note] = true
	}
	return made, true
}

// show has the caches show the pod and its requests as the operator sees them, and all others.
func (w *world) show() {
	c := w.caches
	if c.pod == w.seen && maps.Equal(c.requests, w.asked) && c.nodeless == w.nodeless {
		return
	}
	c.pod, c.requests, c.nodeless = w.seen, w.asked, w.nodeless
	all := append(slices.Clone(w.others), w.seen)
	for _, name := range slices.Sorted(maps.Keys(w.asked)) {
		all = append(all, w.asked[name])
	}
	if !w.nodeless {
		all = append(all, newNode(w.pod.Spec.NodeName, w.virtual))
	}
	server := simulate.New(cluster.Options{})
	for _, o := range all {
		server.Add(o).SetResourceVersion(o.GetResourceVersion())
	}
	c.Show(server.View(nil))
}

func (w *world) ask(a *action.Action) progress.Outcome {
	write := string(a.Verb) + " " + cluster.KindOf(a.Object)
	switch {
	case w.odds(8):
		w.newOperator()
		return progress.OutcomeOf(operator.ErrCrash)
	case w.refused[write]:
		require.NoError(w, w.tries.Refused(write, w.at))
		return progress.OutcomeOf(apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, a.Object.GetName(), errors.New("refused")))
	}
	w.tries.Taken(write)
	name := a.Object.GetName()
	if a.Object.GetUID() == w.pod.UID && a.Object.GetResourceVersion() != w.pod.ResourceVersion {
		return progress.OutcomeOf(apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, w.pod.Name, errors.New("changed")))
	}
	if found := w.request(name); found != nil && a.Verb == action.Create {
		return progress.NameTaken("create", apierrors.NewAlreadyExists(schema.GroupResource{Resource: "x"}, name), found, w.pod.UID)
	} else if found == nil && a.Verb == action.Delete {
		return progress.OutcomeOf(apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, name))
	}
	w.write(a)
	w.asked = maps.Clone(w.requests) // passes wait until the cache shows their writes
	if w.odds(10) {                  // the answer is lost, not the write
		return progress.OutcomeOf(apierrors.NewTimeoutError("no answer", 0))
	}
	return progress.OutcomeOf(nil)
}

// request returns a request in the namespace of the pod, nil for none.
func (w *world) request(name string) client.Object {
	for _, o := range w.others {
		if _, ok := o.(*daemon.ContainerRecreateRequest); ok && o.GetName() == name && o.GetNamespace() == w.pod.Namespace {
			return o
		}
	}
	if r := w.requests[name]; r != nil {
		return r
	}
	return nil
}

// write judges and makes a write.
func (w *world) write(a *action.Action) {
	require.NotEqual(w, corev1.RestartPolicyAlways, w.pod.Spec.RestartPolicy, "I-ST-4")
	require.False(w, w.due.IsZero(), "I-ST-1: %s before all main containers have ended", a)
	require.Equal(w, w.pod.Namespace, a.Object.GetNamespace())
	switch a.Verb {
	case action.Create:
		r := a.Object.(*daemon.ContainerRecreateRequest).DeepCopy()
		r.CreationTimestamp, r.UID, r.ResourceVersion = metav1.NewTime(w.at), types.UID(fmt.Sprint(r.Name, w.at)), "1"
		for _, c := range r.Spec.Containers {
			m := w.sidecars[c.Name]
			require.True(w, m.stopped, "%s is no sidecar", c.Name)
			require.True(w, !m.ignored || len(w.phases) > 0, "I-ST-3: %s ends before the result is decided", c.Name)
			w.named[c.Name]++
			require.LessOrEqual(w, w.named[c.Name], mostRequests, "%s is asked to stop too often", c.Name)
		}
		require.False(w, w.virtual)
		require.True(w, w.passes.Served, "requests are not served")
		w.requests[r.Name] = r
	case action.Delete:
		require.True(w, metav1.IsControlledBy(a.Object, w.pod), "%s is another's", a.Object.GetName())
		w.forget(a.Object.GetName())
	case action.UpdateInPlace:
		require.True(w, w.virtual)
		w.replace(a.Patches[0].Body)
	case action.PatchStatus:
		phase := a.Patches[0].Body["status"].(map[string]any)["phase"].(string)
		require.Equal(w, w.result(), corev1.PodPhase(phase), "I-ST-3")
		w.phases, w.late = append(w.phases, corev1.PodPhase(phase)), true
		w.change(func(pod *corev1.Pod) {
			gen.Phase(corev1.PodPhase(phase))(pod)
			if strings.Contains(fmt.Sprint(a.Patches[0].Body), "conditions") {
				pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
					Type: contract.SidecarTerminated, Status: corev1.ConditionTrue, Reason: map[string]string{
						string(corev1.PodSucceeded): plan.ConditionSucceeded, string(corev1.PodFailed): plan.ConditionFailed,
					}[phase],
				})
			}
		})
	default:
		require.Fail(w, "unexpected", a.String())
	}
}

func (w *world) replace(body map[string]any) {
	for _, c := range body["spec"].(map[string]any)["containers"].([]any) {
		name, image := c.(map[string]any)["name"].(string), c.(map[string]any)["image"].(string)
		require.True(w, w.sidecars[name].replaced && image == "quick:1", "%s: %s", name, image)
		w.images[name]++
		require.Equal(w, 1, w.images[name], "G2: %s has the image", name)
		w.change(gen.Image(name, image))
	}
}

// mainsEnded reports whether all main containers have ended for good.
func (w *world) mainsEnded() bool {
	return !slices.ContainsFunc(w.pod.Spec.Containers, func(c corev1.Container) bool { return !w.isSidecar(c.Name) && !w.ended(&c) })
}

// ended reports whether a container has ended and is not started again.
func (w *world) ended(c *corev1.Container) bool {
	s, policy := statusOf(w.pod, c.Name), w.pod.Spec.RestartPolicy
	if c.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	return isTerminated(s) && (final(w.pod.Status.Phase) || policy == corev1.RestartPolicyNever ||
		policy == corev1.RestartPolicyOnFailure && s.State.Terminated.ExitCode == 0)
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == container })
	return &pod.Status.ContainerStatuses[i]
}

func isTerminated(s *corev1.ContainerStatus) bool { return s.State.Terminated != nil }

func isRunning(s *corev1.ContainerStatus) bool { return s.State.Running != nil }

func final(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// exits ends a container with a code.
func exits(name string, code int32) gen.PodOption {
	return func(pod *corev1.Pod) {
		statusOf(pod, name).State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
}

// waits has a container wait.
func waits(name string) gen.PodOption {
	return func(pod *corev1.Pod) {
		statusOf(pod, name).State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	}
}
