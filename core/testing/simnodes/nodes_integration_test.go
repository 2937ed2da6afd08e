package simnodes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) { env.Run(m, testenv.Options{}) }

// room is one test's namespace with simulated nodes of its own.
type room struct {
	*testing.T
	namespace string
	nodes     *simnodes.Nodes
	kube      kubernetes.Interface
}

func newRoom(t *testing.T, o simnodes.Options) room {
	t.Helper()
	namespace := env.Namespace(t)
	kube, err := kubernetes.NewForConfig(env.ConfigAs(t, "test"))
	require.NoError(t, err)
	o.Prefix = namespace + "-"
	ctx, stop := context.WithCancel(t.Context())
	nodes, err := simnodes.Start(ctx, env.Config, o)
	require.NoError(t, err)
	t.Cleanup(func() { stop(); nodes.Wait() })
	return room{T: t, namespace: namespace, nodes: nodes, kube: kube}
}

// pod returns a pod on the room's first node.
func (r room) pod(name, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName:   r.nodes.Names()[0],
			Containers: []corev1.Container{{Name: "main", Image: image}},
		},
	}
}

func (r room) create(pod *corev1.Pod) *corev1.Pod {
	r.Helper()
	created, err := r.kube.CoreV1().Pods(r.namespace).Create(r.Context(), pod, metav1.CreateOptions{})
	require.NoError(r, err)
	return created
}

// until watches the pod and returns its first version that satisfies the condition, and every
// version seen until then.
func (r room) until(name string, satisfied func(*corev1.Pod) bool, since ...*corev1.Pod) (*corev1.Pod, []corev1.Pod) {
	r.Helper()
	ctx, stop := context.WithTimeout(r.Context(), 2*time.Minute)
	defer stop()
	one := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	for _, version := range since { // so that no state after it is missed
		one.ResourceVersion = version.ResourceVersion
	}
	watch, err := r.kube.CoreV1().Pods(r.namespace).Watch(ctx, one)
	require.NoError(r, err)
	defer watch.Stop()
	var seen []corev1.Pod
	for event := range watch.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		require.True(r, ok, "%v", event.Object)
		seen = append(seen, *pod)
		if satisfied(pod) {
			return pod, seen
		}
	}
	last := "never seen"
	if len(seen) > 0 {
		last = fmt.Sprintf("%+v", seen[len(seen)-1].Status)
	}
	require.Fail(r, "pod "+name+" did not get there", last)
	return nil, nil
}

// gone waits until the pod is no more.
func (r room) gone(name string) {
	r.Helper()
	await.Until(r, func(c *assert.CollectT) {
		_, err := r.kube.CoreV1().Pods(r.namespace).Get(r.Context(), name, metav1.GetOptions{})
		require.Error(c, err)
		assert.NoError(c, client.IgnoreNotFound(err))
	})
}

func (r room) patch(name, patch string, subresources ...string) *corev1.Pod {
	r.Helper()
	pod, err := r.kube.CoreV1().Pods(r.namespace).Patch(r.Context(), name, "application/strategic-merge-patch+json",
		[]byte(patch), metav1.PatchOptions{}, subresources...)
	require.NoError(r, err)
	return pod
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

func ready(pod *corev1.Pod) bool {
	return condition(pod, corev1.PodReady).Status == corev1.ConditionTrue
}

func running(image string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return ready(pod) && pod.Status.ContainerStatuses[0].Image == image }
}

func waitingFor(reason string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
			pod.Status.ContainerStatuses[0].State.Waiting.Reason == reason
	}
}

func TestNodesAreReadyAndUntainted(t *testing.T) {
	env.Need(t)
	r := newRoom(t, simnodes.Options{Nodes: 3, PodsPerNode: 7, Labels: func(i int) map[string]string {
		return map[string]string{"zone": string(rune('a' + i))}
	}})
	for i, name := range r.nodes.Names() {
		node, err := r.kube.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Empty(t, node.Spec.Taints)
		assert.Equal(t, string(rune('a'+i)), node.Labels["zone"])
		assert.Equal(t, int64(7), node.Status.Allocatable.Pods().Value())
		assert.Equal(t, corev1.NodeReady, node.Status.Conditions[0].Type)
		assert.Equal(t, corev1.ConditionTrue, node.Status.Conditions[0].Status)
		await.Until(t, func(c *assert.CollectT) {
			lease, err := r.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(c, err)
			assert.Equal(c, name, *lease.Spec.HolderIdentity)
		})
	}
}

func TestPodGetsReadyWithOneWrite(t *testing.T) {
	env.Need(t)
	r := newRoom(t, simnodes.Options{Nodes: 1})
	r.create(r.pod("web", "web:v1"))
	pod, seen := r.until("web", ready)
	assert.LessOrEqual(t, len(seen), 2)
	assert.Equal(t, corev1.PodRunning, pod.Status.Phase)
	assert.Equal(t, pod.Generation, pod.Status.ObservedGeneration)
	assert.NotEmpty(t, pod.Status.PodIP)
	s := pod.Status.ContainerStatuses[0]
	assert.Equal(t, simnodes.ImageID("web:v1"), s.ImageID)
	assert.True(t, strings.HasPrefix(s.ContainerID, "containerd://"))
	assert.NotNil(t, s.State.Running)
	assert.Zero(t, s.RestartCount)
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, int64(1), r.nodes.Counts().Ready) })
	assert.Equal(t, int64(1), r.nodes.Counts().Reports)
}

func TestImageChangeReplacesTheContainer(t *testing.T) {
	env.Need(t)
	r := newRoom(t, simnodes.Options{Nodes: 1, Images: map[string]simnodes.Image{"web:v2-again": {SameAs: "web:v2"}}})
	r.create(r.pod("web", "web:v1"))
	old, _ := r.until("web", ready)
	changed := r.patch("web", `{"spec":{"containers":[{"name":"main","image":"web:v2"}]}}`)
	now, seen := r.until("web", running("web:v2"), changed)

	before, after := old.Status.ContainerStatuses[0], now.Status.ContainerStatuses[0]
	assert.Equal(t, changed.Generation, now.Status.ObservedGeneration)
	assert.NotEqual(t, before.ContainerID, after.ContainerID)
	assert.NotEqual(t, before.ImageID, after.ImageID)
	assert.Equal(t, int32(1), after.RestartCount)
	assert.Equal(t, before.ContainerID, after.LastTerminationState.Terminated.ContainerID)
	between := false
	for _, version := range seen {
		s := version.Status.ContainerStatuses[0]
		if !ready(&version) && s.ContainerID == before.ContainerID && version.Status.ObservedGeneration == changed.Generation {
			between = true
		}
	}
	assert.True(t, between, "the end of the old container is reported before the start of the new one")

	r.patch("web", `{"spec":{"containers":[{"name":"main","image":"web:v2-again"}]}}`)
	again, _ := r.until("web", running("web:v2-again"))
	assert.Equal(t, after.ImageID, again.Status.ContainerStatuses[0].ImageID)
	assert.NotEqual(t, after.ContainerID, again.Status.ContainerStatuses[0].ContainerID)
}

func TestReadinessGatesAreHonoured(t *testing.T) {
	env.Need(t)
	r := newRoom(t, simnodes.Options{Nodes: 1})
	pod := r.pod("web", "web:v1")
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	r.create(pod)
	held, _ := r.until("web", func(p *corev1.Pod) bool { return condition(p, corev1.ContainersReady).Status == corev1.ConditionTrue })
	assert.Equal(t, "ReadinessGatesNotReady", condition(held, corev1.PodReady).Reason)
	assert.False(t, ready(held))
	r.patch("web", `{"status":{"conditions":[{"type":"example.com/gate","status":"True"}]}}`, "status")
	r.until("web", ready)
	r.patch("web", `{"status":{"conditions":[{"type":"example.com/gate","status":"False"}]}}`, "status")
	r.until("web", func(p *corev1.Pod) bool { return !ready(p) })
}

func TestResizeIsCarriedOut(t *testing.T) {
	env.Need(t)
	r := newRoom(t, simnodes.Options{Nodes: 1, Images: map[string]simnodes.Image{"full:v1": {RefuseResize: corev1.PodReasonDeferred}}})
	for name, policy := range map[string]corev1.ResourceResizeRestartPolicy{"live": corev1.NotRequired, "restart": corev1.RestartContainer} {
		t.Run(name, func(t *testing.T) {
			pod := r.pod(name, "web:v1")
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: policy}}
			r.create(pod)
			r.until(name, ready)
			r.patch(name, `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"2"}}}]}}`, "resize")
			resized, _ := r.until(name, func(p *corev1.Pod) bool {
				s := p.Status.ContainerStatuses[0]
				return ready(p) && s.Resources != nil && s.Resources.Requests.Cpu().Value() == 2
			})
			assert.Equal(t, resized.Generation, resized.Status.ObservedGeneration)
			assert.Equal(t, policy == corev1.RestartContainer, resized.Status.ContainerStatuses[0].RestartCount == 1)
		})
	}
	pod := r.pod("refused", "full:v1")
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	r.create(pod)
	r.until("refused", ready)
	r.patch("refused", `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"2"}}}]}}`, "resize")
	refused, _ := r.until("refused", func(p *corev1.Pod) bool { return condition(p, corev1.PodResizePending).Status == corev1.ConditionTrue })
	assert.Equal(t, corev1.PodReasonDeferred, condition(refused, corev1.PodResizePending).Reason)
	assert.Equal(t, int64(1), refused.Status.ContainerStatuses[0].Resources.Requests.Cpu().Value())
}

func TestDeletedPodsGo(t *testing.T) {
	env.Need(t)
	r := newRoom(t, simnodes.Options{Nodes: 1})
	r.create(r.pod("plain", "web:v1"))
	r.until("plain", ready)
	pod := r.pod("held", "web:v1")
	pod.Finalizers = []string{"example.com/hold"}
	r.create(pod)
	r.until("held", ready)
	for _, name := range []string{"plain", "held"} {
		require.NoError(t, r.kube.CoreV1().Pods(r.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	r.gone("plain")
	held, _ := r.until("held", func(p *corev1.Pod) bool {
		return p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
	})
	assert.Equal(t, corev1.PodSucceeded, held.Status.Phase)
	assert.NotNil(t, held.Status.ContainerStatuses[0].State.Terminated)
	r.patch("held", `{"metadata":{"finalizers":null}}`)
	r.gone("held")
}

func TestFaultyImages(t *testing.T) {
	env.Need(t)
	r := newRoom(t, simnodes.Options{Nodes: 1, Images: map[string]simnodes.Image{
		"web:crash":  simnodes.CrashLoop(),
		"web:absent": {PullFails: true},
		"web:sick":   {NeverReady: true},
		"web:mute":   {Silent: true},
	}})
	for _, fault := range []string{"crash", "absent", "sick", "mute"} {
		r.create(r.pod(fault, "web:"+fault))
	}
	crashed, _ := r.until("crash", func(p *corev1.Pod) bool {
		return waitingFor("CrashLoopBackOff")(p) && p.Status.ContainerStatuses[0].RestartCount == 1
	})
	assert.Equal(t, int32(1), crashed.Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode)
	absent, _ := r.until("absent", waitingFor("ImagePullBackOff"))
	assert.Equal(t, corev1.PodPending, absent.Status.Phase)
	sick, _ := r.until("sick", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	assert.False(t, ready(sick))
	mute, err := r.kube.CoreV1().Pods(r.namespace).Get(t.Context(), "mute", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, mute.Status.ContainerStatuses)
	for _, fault := range []string{"crash", "absent", "sick", "mute"} {
		r.patch(fault, `{"spec":{"containers":[{"name":"main","image":"web:good"}]}}`)
		r.until(fault, running("web:good"))
	}
	r.create(r.pod("absent-again", "web:absent"))
	r.until("absent-again", waitingFor("ImagePullBackOff"))
	r.nodes.SetImage("web:absent", simnodes.Image{})
	r.until("absent-again", ready)
}

func TestTestsCanBreakRunningContainers(t *testing.T) {
	env.Need(t)
	r := newRoom(t, simnodes.Options{Nodes: 1})
	key := client.ObjectKeyFromObject(r.create(r.pod("web", "web:v1")))
	first, _ := r.until("web", ready)
	require.NoError(t, r.nodes.SetReady(key, "main", false))
	r.until("web", func(p *corev1.Pod) bool { return !ready(p) })
	require.NoError(t, r.nodes.SetReady(key, "main", true))
	r.until("web", ready)
	require.NoError(t, r.nodes.Exit(key, "main", 3))
	again, _ := r.until("web", func(p *corev1.Pod) bool { return ready(p) && p.Status.ContainerStatuses[0].RestartCount == 1 })
	assert.Equal(t, int32(3), again.Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode)
	assert.NotEqual(t, first.Status.ContainerStatuses[0].ContainerID, again.Status.ContainerStatuses[0].ContainerID)
	assert.Error(t, r.nodes.Exit(key, "other", 1))
}

// A kubelet that evicts a pod says that it has failed, and what has failed does not come back.
func TestPodsThatHaveEndedStaySo(t *testing.T) {
	env.Need(t)
	r := newRoom(t, simnodes.Options{Nodes: 1})
	r.create(r.pod("evicted", "app:1"))
	evicted, _ := r.until("evicted", ready)
	evicted.Status.Phase = corev1.PodFailed
	evicted, err := r.kube.CoreV1().Pods(r.namespace).UpdateStatus(t.Context(), evicted, metav1.UpdateOptions{})
	require.NoError(t, err)
	r.create(r.pod("next", "app:1"))
	r.until("next", ready)
	now, err := r.kube.CoreV1().Pods(r.namespace).Get(t.Context(), evicted.Name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, evicted.ResourceVersion, now.ResourceVersion)
}

func TestPausedNodeCatchesUp(t *testing.T) {
	env.Need(t)
	r := newRoom(t, simnodes.Options{Nodes: 2})
	r.nodes.Pause(r.nodes.Names()[0])
	r.create(r.pod("waits", "web:v1"))
	other := r.pod("goes-on", "web:v1")
	other.Spec.NodeName = r.nodes.Names()[1]
	r.create(other)
	r.until("goes-on", ready)
	waits, err := r.kube.CoreV1().Pods(r.namespace).Get(t.Context(), "waits", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, waits.Status.ContainerStatuses)
	r.nodes.Resume(r.nodes.Names()[0])
	r.until("waits", ready)
}

func TestRestartOfTheSimulationRestartsNothing(t *testing.T) {
	env.Need(t)
	namespace := env.Namespace(t)
	kube, err := kubernetes.NewForConfig(env.Config)
	require.NoError(t, err)
	o := simnodes.Options{Nodes: 1, Prefix: namespace + "-"}
	ctx, stop := context.WithCancel(t.Context())
	nodes, err := simnodes.Start(ctx, env.Config, o)
	require.NoError(t, err)
	r := room{T: t, namespace: namespace, nodes: nodes, kube: kube}
	r.create(r.pod("old", "web:v1"))
	old, _ := r.until("old", ready)
	stop()
	nodes.Wait()

	ctx, stop = context.WithCancel(t.Context())
	defer func() { stop(); r.nodes.Wait() }()
	r.nodes, err = simnodes.Start(ctx, env.Config, o)
	require.NoError(t, err)
	r.create(r.pod("new", "web:v1"))
	r.until("new", ready)
	same, err := kube.CoreV1().Pods(namespace).Get(t.Context(), "old", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, old.ResourceVersion, same.ResourceVersion)
	r.patch("old", `{"spec":{"containers":[{"name":"main","image":"web:v2"}]}}`)
	now, _ := r.until("old", running("web:v2"))
	assert.Equal(t, int32(1), now.Status.ContainerStatuses[0].RestartCount)
}

func TestBinderPlacesPods(t *testing.T) {
	env.Need(t)
	r := newRoom(t, simnodes.Options{Nodes: 3, PodsPerNode: 2, Bind: true, Labels: func(i int) map[string]string {
		return map[string]string{"number": fmt.Sprint(i)}
	}})
	selected := r.pod("selected", "web:v1")
	selected.Spec.NodeName, selected.Spec.NodeSelector = "", map[string]string{"number": "2"}
	r.create(selected)
	pinned := r.pod("pinned", "web:v1")
	pinned.Spec.NodeName = ""
	pinned.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: r.nodes.Names()[1:2]}},
		}}},
	}}
	r.create(pinned)
	pod, _ := r.until("selected", ready)
	assert.Equal(t, r.nodes.Names()[2], pod.Spec.NodeName)
	pod, _ = r.until("pinned", ready)
	assert.Equal(t, r.nodes.Names()[1], pod.Spec.NodeName)

	used := map[string]int{}
	for i := range 4 {
		free := r.pod(fmt.Sprintf("free-%d", i), "web:v1")
		free.Spec.NodeName = ""
		r.create(free)
		pod, _ := r.until(free.Name, ready)
		used[pod.Spec.NodeName]++
	}
	assert.Equal(t, map[string]int{r.nodes.Names()[0]: 2, r.nodes.Names()[1]: 1, r.nodes.Names()[2]: 1}, used)

	tooMany := r.pod("too-many", "web:v1")
	tooMany.Spec.NodeName = ""
	r.create(tooMany)
	r.until("too-many", func(p *corev1.Pod) bool {
		return condition(p, corev1.PodScheduled).Reason == corev1.PodReasonUnschedulable
	})
	require.NoError(t, r.kube.CoreV1().Pods(r.namespace).Delete(t.Context(), "free-0", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](5)}))
	r.until("too-many", ready)
}

// A pod that waits for room may be bound by others, to a node of theirs.
func TestPodsThatOthersBindAreTheirs(t *testing.T) {
	env.Need(t)
	r := newRoom(t, simnodes.Options{Nodes: 1, PodsPerNode: 1, Bind: true})
	pods := r.kube.CoreV1().Pods(r.namespace)
	for _, name := range []string{"first", "waits", "next"} {
		pod := r.pod(name, "web:v1")
		pod.Spec.NodeName = ""
		r.create(pod)
		r.until(name, func(p *corev1.Pod) bool {
			return name == "first" && ready(p) || condition(p, corev1.PodScheduled).Status == corev1.ConditionFalse
		})
	}
	require.NoError(t, pods.Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "waits"}, Target: corev1.ObjectReference{Kind: "Node", Name: "of-others"},
	}, metav1.CreateOptions{}))
	require.NoError(t, pods.Delete(t.Context(), "first", metav1.DeleteOptions{}))
	r.until("next", ready)
	pod, err := pods.Get(t.Context(), "waits", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Empty(t, pod.Status.ContainerStatuses)
}

func TestOneServerCarriesALoad(t *testing.T) {
	env.Need(t)
	namespace := env.Namespace(t)
	figures, err := simnodes.Measure(t.Context(), env.Config, namespace, 300, simnodes.Options{Nodes: 10, Prefix: namespace + "-"})
	require.NoError(t, err)
	t.Log(figures)
	assert.Positive(t, figures.Ready)
}

// BenchmarkPodsToReady prints the simulation's own ceiling.
func BenchmarkPodsToReady(b *testing.B) {
	env.Need(b)
	for b.Loop() {
		namespace := env.Namespace(b)
		figures, err := simnodes.Measure(b.Context(), env.Config, namespace, 2000, simnodes.Options{Nodes: 20, Prefix: namespace + "-"})
		require.NoError(b, err)
		b.ReportMetric(figures.Created, "created/s")
		b.ReportMetric(figures.Ready, "ready/s")
		b.ReportMetric(figures.Removed, "removed/s")
	}
}
