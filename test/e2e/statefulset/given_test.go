package statefulset

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

const app = "flotilla/demo-app:"

// newSet returns a Parallel StatefulSet "web" of the demo application at v1, updated in place, one pod at a time.
func newSet(namespace string, replicas int32, change ...func(*v1beta1.StatefulSet)) *v1beta1.StatefulSet {
	set := &v1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: v1beta1.StatefulSetSpec{
			Replicas:            &replicas,
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:            &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template:            template("v1"),
			UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{
				Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{
					PodUpdatePolicy: v1beta1.InPlaceIfPossible,
					MaxUnavailable:  new(intstr.FromInt32(1)),
				},
			},
		},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

func template(version string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			ReadinessGates:                []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}},
			Containers:                    []corev1.Container{{Name: "main", Image: app + version}},
			TerminationGracePeriodSeconds: new(int64(2)),
		},
	}
}

func ordered(set *v1beta1.StatefulSet) {
	set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
}

func recreating(set *v1beta1.StatefulSet) {
	set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = v1beta1.ReCreate
}

func image(version string) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = app + version }
}

func replicas(n int32) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) { set.Spec.Replicas = &n }
}

func partition(n int32) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = &n }
}

func maxUnavailable(n int32) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(n))
	}
}

// reserve returns a change that reserves the ordinals.
func reserve(ordinals ...any) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) {
		set.Spec.ReserveOrdinals = nil
		for _, o := range ordinals {
			set.Spec.ReserveOrdinals = append(set.Spec.ReserveOrdinals, intstr.Parse(fmt.Sprint(o)))
		}
	}
}

// changes returns one change that makes all of them.
func changes(all ...func(*v1beta1.StatefulSet)) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) {
		for _, change := range all {
			change(set)
		}
	}
}

// givenSet creates the set and waits until it settles.
func givenSet(t *testing.T, set *v1beta1.StatefulSet) {
	t.Helper()
	require.NoError(t, world.Client.Create(t.Context(), set))
	settles(t, set)
}

// rolls changes the set at rest, and waits until it settles again, as its forecast says.
func rolls(t *testing.T, set *v1beta1.StatefulSet, change func(*v1beta1.StatefulSet)) {
	t.Helper()
	rollout := forecasts.Edit(t, world, set, change)
	settles(t, set)
	rollout.ComesTrue(t)
}

// settles waits until the set's status is for its current spec and all its pods meet it.
func settles(t *testing.T, set *v1beta1.StatefulSet) {
	t.Helper()
	story.Settles(t, world, set, func(set *v1beta1.StatefulSet) error {
		s, pods := set.Status, story.Active(podsOf(t, set))
		return story.Want(s.AvailableReplicas == *set.Spec.Replicas && len(pods) == int(*set.Spec.Replicas), "status is %+v with %d pods", s, len(pods))
	})
}

func podsOf(t *testing.T, set *v1beta1.StatefulSet) []corev1.Pod {
	t.Helper()
	return world.Pods(t, set.Namespace)
}

func names(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, pods[i].Name)
	}
	return all
}

// versions returns the image tags in the specs of the pods, in the order of the pods.
func versions(pods []corev1.Pod) []string {
	var all []string
	for _, image := range story.Images(pods) {
		all = append(all, image[len(app):])
	}
	return all
}

// isStuck reports whether the only container waits for the image.
func isStuck(o *corev1.Pod, image string) bool {
	status := o.Status.ContainerStatuses
	return o.Spec.Containers[0].Image == image && len(status) == 1 && status[0].State.Waiting != nil &&
		(status[0].State.Waiting.Reason == "ErrImagePull" || status[0].State.Waiting.Reason == "ImagePullBackOff")
}
