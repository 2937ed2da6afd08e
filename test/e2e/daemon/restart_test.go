package daemon

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	budgets "github.com/flotilla-project/flotilla/budget/api/v1beta1"
	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/contract"
	daemonsets "github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	statefulsets "github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

func TestAStatefulSetIsRestartedInPlace(t *testing.T) {
	t.Parallel()
	restartsInPlace(t, newStatefulSet(world.Namespace(t), intstr.FromInt32(1)),
		func(set *statefulsets.StatefulSet) *corev1.PodTemplateSpec { return &set.Spec.Template })
}

func TestADaemonSetIsRestartedInPlace(t *testing.T) {
	t.Parallel()
	restartsInPlace(t, newDaemonSet(world.Namespace(t)), func(set *daemonsets.DaemonSet) *corev1.PodTemplateSpec { return &set.Spec.Template })
}

// Without the node agent nothing is restarted in place: InPlaceOnly waits with a reason, and where the policy allows it the
// pods are recreated, one after the other.
func TestWithoutTheNodeAgentNothingIsRestartedInPlace(t *testing.T) {
	world.KeepAgentsAway(t, "daemon")
	stateful, daemon := newStatefulSet(world.Namespace(t), intstr.FromInt32(1)), newDaemonSet(world.Namespace(t))
	require.NoError(t, world.Client.Create(t.Context(), stateful))
	require.NoError(t, world.Client.Create(t.Context(), daemon))
	story.Settles(t, world, stateful, nil)
	story.Settles(t, world, daemon, nil)
	ofStateful, ofDaemon := world.Pods(t, stateful.Namespace), world.Pods(t, daemon.Namespace)
	restart := map[string]string{contract.RestartInPlaceAnnotation: "1 main"}

	waits := forecasts.Edit(t, world, stateful, func(set *statefulsets.StatefulSet) { set.Spec.Template.Annotations = restart })
	isRecreated(t, daemon, ofDaemon, func(set *daemonsets.DaemonSet) { set.Spec.Template.Annotations = restart })
	story.WaitsFor(t, world, stateful, "NodeAgentMissing", "web-1")
	waits.ComesTrue(t)
	assert.Equal(t, story.Identities(ofStateful), story.Identities(world.Pods(t, stateful.Namespace)))
	isRecreated(t, stateful, ofStateful, func(set *statefulsets.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = statefulsets.InPlaceIfPossible
	})
}

// isRecreated edits a set of which one pod may be out of service, and waits until none of its pods is left.
func isRecreated[T client.Object](t *testing.T, set T, before []corev1.Pod, change func(T)) {
	t.Helper()
	end := world.Always(t, set.GetNamespace(), story.AtLeastReady(len(before)-1))
	rolls(t, set, change)
	end()
	uids := map[types.UID]bool{}
	for i := range before {
		uids[before[i].UID] = true
	}
	after := story.Active(world.Pods(t, set.GetNamespace()))
	assert.Len(t, after, len(before))
	for i := range after {
		assert.False(t, uids[after[i].UID], after[i].Name)
	}
}

// restartsInPlace restarts container main of the pods of a set of which one may be out of service: each of them once, and
// nothing else.
func restartsInPlace[T client.Object](t *testing.T, set T, template func(T) *corev1.PodTemplateSpec) {
	t.Helper()
	require.NoError(t, world.Client.Create(t.Context(), set))
	story.Settles(t, world, set, nil)
	before := world.Pods(t, set.GetNamespace())
	for i := range before {
		metaOf(t, &before[i])
	}
	end := world.Always(t, set.GetNamespace(), story.AtLeastReady(len(before)-1))
	rolls(t, set, func(set T) {
		template(set).Annotations = map[string]string{contract.RestartInPlaceAnnotation: "1 main"}
	})
	end()
	after := world.Pods(t, set.GetNamespace())
	assert.Equal(t, story.Identities(before), story.Identities(after))
	for i := range after {
		assert.Equal(t, map[string]int32{"main": 1, "other": 0}, restarts(&after[i]), after[i].Name)
		assert.NotEqual(t, container(t, &before[i], "main").ContainerID, container(t, &after[i], "main").ContainerID)
	}
}

// A restart in place takes a pod out of service, as any update in place does.
func TestABudgetHoldsUpARestartInPlace(t *testing.T) {
	t.Parallel()
	set := newStatefulSet(world.Namespace(t), intstr.FromString("100%"))
	require.NoError(t, world.Client.Create(t.Context(), set))
	story.Settles(t, world, set, nil)
	before := world.Pods(t, set.Namespace)
	for i := range before {
		metaOf(t, &before[i])
	}
	b := &budgets.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: set.Namespace},
		Spec:       budgets.PodUnavailableBudgetSpec{Selector: set.Spec.Selector, MinAvailable: new(intstr.FromInt32(int32(len(before))))},
	}
	require.NoError(t, world.Client.Create(t.Context(), b))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: set.Namespace}}
	story.Reaches(t, world, ns, "the budget's mark", func(ns *corev1.Namespace) error {
		return story.Want(ns.Labels[budgets.NamespaceLabel] != "", "labels are %v", ns.Labels)
	})
	for i := range before {
		story.Reaches(t, world, &before[i], "the budget's mark", func(o *corev1.Pod) error {
			return story.Want(o.Annotations[budgets.RelatedAnnotation] == b.Name, "annotations are %v", o.Annotations)
		})
	}
	end := world.Always(t, set.Namespace, story.AtLeastReady(len(before)-1))
	held := forecasts.Edit(t, world, set, func(set *statefulsets.StatefulSet) {
		set.Spec.Template.Annotations = map[string]string{contract.RestartInPlaceAnnotation: "1"}
	})
	story.Reaches(t, world, set, "the budget's refusal", func(set *statefulsets.StatefulSet) error {
		c := story.Condition(set, "Ready")
		told := c.Reason == "BlockedByBudget" && strings.Contains(c.Message, "PodUnavailableBudget "+b.Namespace+"/web refuses")
		return story.Want(told, "condition is %+v", c)
	})
	held.ComesTrue(t)
	for _, o := range world.Pods(t, set.Namespace) {
		assert.Equal(t, map[string]int32{"main": 0, "other": 0}, restarts(&o), o.Name)
	}
	story.Edit(t, world, b, func(b *budgets.PodUnavailableBudget) { b.Spec.MinAvailable = new(intstr.FromInt32(1)) })
	story.Settles(t, world, set, nil)
	end()
	after := world.Pods(t, set.Namespace)
	assert.Equal(t, story.Identities(before), story.Identities(after))
	for i := range after {
		assert.Equal(t, map[string]int32{"main": 1, "other": 1}, restarts(&after[i]), after[i].Name)
	}
}

// A native sidecar is restarted as it is, for what it reads of its pod's metadata, and gets cpu without a restart; the
// container beside it goes on. With all that restarts, it comes first.
func TestANativeSidecarChangesInPlace(t *testing.T) {
	t.Parallel()
	proxy := newContainer("proxy", 8080)
	proxy.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	proxy.Env = []corev1.EnvVar{fromAnnotation("CONFIG", "config")}
	proxy.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
	set := newSet(world.Namespace(t), map[string]string{"config": "a"}, newContainer("main", 8081))
	set.Spec.Template.Spec.InitContainers = []corev1.Container{proxy}
	require.NoError(t, world.Client.Create(t.Context(), set))
	before := settles(t, set)
	story.Reaches(t, world, before, "described by the agent", func(o *corev1.Pod) error {
		return story.Want(o.Annotations[contract.RuntimeContainersMetaAnnotation] != "", "annotations are %v", o.Annotations)
	})
	step := func(proxy, main int32, change func(*corev1.PodTemplateSpec)) *corev1.Pod {
		t.Helper()
		rollout := forecasts.Edit(t, world, set, func(s *clonesets.CloneSet) { change(&s.Spec.Template) })
		after := settles(t, set)
		rollout.ComesTrue(t)
		assert.Equal(t, story.Identities([]corev1.Pod{*before}), story.Identities([]corev1.Pod{*after}))
		assert.Equal(t, []int32{proxy, main}, []int32{after.Status.InitContainerStatuses[0].RestartCount, restarts(after)["main"]})
		return after
	}
	step(1, 0, func(template *corev1.PodTemplateSpec) {
		template.Annotations["config"] = "b"
		template.Spec.InitContainers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m")}
	})
	after := step(1, 0, func(template *corev1.PodTemplateSpec) {
		template.Spec.InitContainers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("30m")}
	})
	environment, err := world.Ask(t, after, "/env")
	require.NoError(t, err)
	assert.Contains(t, environment, "CONFIG=b\n")
	assert.Equal(t, "30m", after.Status.InitContainerStatuses[0].Resources.Requests.Cpu().String())

	after = step(2, 1, func(template *corev1.PodTemplateSpec) { template.Annotations[contract.RestartInPlaceAnnotation] = "1" })
	assert.Equal(t, [][]string{{"proxy"}, {"main"}}, batches(t, after))
}

// rolls changes the set at rest, and waits until it is done, as its forecast says.
func rolls[T client.Object](t *testing.T, set T, change func(T)) {
	t.Helper()
	rollout := forecasts.Edit(t, world, set, change)
	story.Settles(t, world, set, nil)
	rollout.ComesTrue(t)
}

func twoContainers() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			ReadinessGates:                []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}},
			Containers:                    []corev1.Container{newContainer("main", 8080), newContainer("other", 8081)},
			TerminationGracePeriodSeconds: new(int64(5)),
		},
	}
}

// newDaemonSet returns a DaemonSet "web", updated in place, one pod after the other.
func newDaemonSet(namespace string) *daemonsets.DaemonSet {
	return &daemonsets.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: daemonsets.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: twoContainers(),
			UpdateStrategy: daemonsets.DaemonSetUpdateStrategy{
				Type: daemonsets.RollingUpdateStrategyType,
				RollingUpdate: &daemonsets.RollingUpdateDaemonSet{
					RollingUpdateType: daemonsets.InPlaceRollingUpdateType, MaxUnavailable: new(intstr.FromInt32(1)),
				},
			},
		},
	}
}

// newStatefulSet returns a StatefulSet "web" with two pods, updated in place.
func newStatefulSet(namespace string, maxUnavailable intstr.IntOrString) *statefulsets.StatefulSet {
	return &statefulsets.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: statefulsets.StatefulSetSpec{
			Replicas: new(int32(2)), PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: twoContainers(),
			UpdateStrategy: statefulsets.StatefulSetUpdateStrategy{
				Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &statefulsets.RollingUpdateStatefulSetStrategy{
					PodUpdatePolicy: statefulsets.InPlaceOnly, MaxUnavailable: &maxUnavailable,
				},
			},
		},
	}
}
