package budget

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/contract"
	daemonsets "github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	statefulsets "github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

func TestARolloutKeepsToTheBudget(t *testing.T) {
	t.Parallel()
	t.Run("CloneSet in place", func(t *testing.T) {
		t.Parallel()
		set := newCloneSet(world.Namespace(t), 3, clonesets.InPlaceOnly)
		assert.True(t, rollout(t, set, "CloneSet", 3, func(set *clonesets.CloneSet) *corev1.PodSpec { return &set.Spec.Template.Spec }))
	})
	t.Run("CloneSet with new pods", func(t *testing.T) {
		t.Parallel()
		set := newCloneSet(world.Namespace(t), 3, clonesets.ReCreate)
		assert.False(t, rollout(t, set, "CloneSet", 3, func(set *clonesets.CloneSet) *corev1.PodSpec { return &set.Spec.Template.Spec }))
	})
	t.Run("StatefulSet in place", func(t *testing.T) {
		t.Parallel()
		set := newStatefulSet(world.Namespace(t), 2)
		assert.True(t, rollout(t, set, "StatefulSet", 2, func(set *statefulsets.StatefulSet) *corev1.PodSpec { return &set.Spec.Template.Spec }))
	})
	t.Run("DaemonSet in place", func(t *testing.T) {
		t.Parallel()
		set, nodes := newDaemonSet(world.Namespace(t)), int32(len(world.Cluster.Nodes())) //nolint:gosec // they are few
		assert.True(t, rollout(t, set, "DaemonSet", nodes, func(set *daemonsets.DaemonSet) *corev1.PodSpec { return &set.Spec.Template.Spec }))
	})
}

// rollout changes the image of a set which would take all its pods out of service at once, under a budget of none, and
// then of one. It reports whether they are the same pods in the end.
func rollout[T client.Object](t *testing.T, set T, kind string, pods int32, spec func(T) *corev1.PodSpec) (inPlace bool) {
	t.Helper()
	require.NoError(t, world.Client.Create(t.Context(), set))
	settles(t, set, "v1", pods)
	b := oneOf(set.GetNamespace(), "apps.kruise.io/v1beta1", kind)
	b.Spec.MaxUnavailable = new(intstr.FromInt32(0)) // a budget of one refuses for a moment that may pass unseen
	givenBudget(t, b, pods)
	before := story.Identities(world.Pods(t, set.GetNamespace()))

	end := world.Always(t, set.GetNamespace(), story.AtLeastReady(int(pods)-1))
	held := forecasts.Edit(t, world, set, func(set T) { spec(set).Containers[0].Image = app + "v2" })
	story.Reaches(t, world, set, "the budget's refusal", func(set T) error {
		c := story.Condition(set, "Ready")
		told := c.Reason == "BlockedByBudget" && strings.Contains(c.Message, "PodUnavailableBudget "+b.Namespace+"/web refuses")
		return story.Want(told, "condition is %+v", c)
	})
	held.ComesTrue(t)
	story.Edit(t, world, b, func(b *v1beta1.PodUnavailableBudget) { b.Spec.MaxUnavailable = new(intstr.FromInt32(1)) })
	settles(t, set, "v2", pods)
	end()
	inPlace = assert.ObjectsAreEqual(before, story.Identities(story.Active(world.Pods(t, set.GetNamespace()))))
	guards(t, b, pods)
	return inPlace
}

// settles waits until the set's status is for its current spec and all its pods have the version.
func settles[T client.Object](t *testing.T, set T, version string, pods int32) {
	t.Helper()
	story.Settles(t, world, set, func(set T) error {
		images := story.Images(story.Active(world.Pods(t, set.GetNamespace())))
		done := len(images) == int(pods)
		for _, image := range images {
			done = done && image == app+version
		}
		return story.Want(done, "images are %v, and %d pods are to have %s", images, pods, version)
	})
}

// newCloneSet returns a CloneSet "web" that updates all its pods at once.
func newCloneSet(namespace string, replicas int32, policy clonesets.PodUpdatePolicy) *clonesets.CloneSet {
	return &clonesets.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: clonesets.CloneSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels()},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels()}, Spec: podSpec()},
			UpdateStrategy: clonesets.CloneSetUpdateStrategy{
				Type: clonesets.RollingUpdate,
				RollingUpdate: &clonesets.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: policy, MaxUnavailable: new(intstr.FromString("100%")),
				},
			},
		},
	}
}

// newStatefulSet returns a StatefulSet "web" that updates all its pods at once, in place.
func newStatefulSet(namespace string, replicas int32) *statefulsets.StatefulSet {
	spec := podSpec()
	spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}}
	return &statefulsets.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: statefulsets.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels()}, PodManagementPolicy: appsv1.ParallelPodManagement,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels()}, Spec: spec},
			UpdateStrategy: statefulsets.StatefulSetUpdateStrategy{
				Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &statefulsets.RollingUpdateStatefulSetStrategy{
					PodUpdatePolicy: statefulsets.InPlaceOnly, MaxUnavailable: new(intstr.FromString("100%")),
				},
			},
		},
	}
}

// newDaemonSet returns a DaemonSet "web" that updates all its pods at once, in place.
func newDaemonSet(namespace string) *daemonsets.DaemonSet {
	return &daemonsets.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: daemonsets.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels()},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels()}, Spec: podSpec()},
			UpdateStrategy: daemonsets.DaemonSetUpdateStrategy{
				Type: daemonsets.RollingUpdateStrategyType,
				RollingUpdate: &daemonsets.RollingUpdateDaemonSet{
					RollingUpdateType: daemonsets.InPlaceRollingUpdateType, MaxUnavailable: new(intstr.FromString("100%")),
				},
			},
		},
	}
}
