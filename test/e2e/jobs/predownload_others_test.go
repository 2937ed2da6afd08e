package jobs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"

	daemonsets "github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	statefulsets "github.com/flotilla-project/flotilla/statefulset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// parallelPulls are the annotations of a workload whose images are pulled on all nodes at once.
func parallelPulls() map[string]string {
	return map[string]string{contract.ImagePreDownloadParallelismAnnotation: "3"}
}

func TestImagesArePulledAheadOfAStatefulSet(t *testing.T) {
	t.Parallel()
	const before, after, replicas = "example.com/ahead/stateful:v1", "example.com/ahead/stateful:v2", 4
	publish(t, "v1", before)
	publish(t, "v2", after)
	givenRole(t, "../../../statefulset/config/predownload/role.yaml")
	world.TurnOn(t, "statefulset-manager", "PreDownloadImageForInPlaceUpdate")
	set := &statefulsets.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace(t), Name: "web", Annotations: parallelPulls()}}
	set.Spec = statefulsets.StatefulSetSpec{
		Replicas: new(int32(replicas)), PodManagementPolicy: appsv1.ParallelPodManagement,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: webTemplate(before),
		UpdateStrategy: statefulsets.StatefulSetUpdateStrategy{
			Type: appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &statefulsets.RollingUpdateStatefulSetStrategy{
				PodUpdatePolicy: statefulsets.InPlaceIfPossible, MaxUnavailable: new(intstr.FromInt32(2)),
			},
		},
	}
	set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}}
	require.NoError(t, world.Client.Create(t.Context(), set))
	story.Reaches(t, world, set, "available", func(set *statefulsets.StatefulSet) error {
		return story.Want(set.Status.AvailableReplicas == replicas, "status is %+v", set.Status)
	})
	pods := world.Pods(t, set.Namespace)

	ahead := forecasts.Edit(t, world, set, func(set *statefulsets.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32(replicas))
		set.Spec.Template.Spec.Containers[0].Image = after
	})
	job := pulledAhead(t, set, before, after)
	ahead.ComesTrue(t)
	rollout := forecasts.Edit(t, world, set, func(set *statefulsets.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = nil })
	story.Reaches(t, world, set, "updated", func(set *statefulsets.StatefulSet) error {
		s := &set.Status
		return story.Want(s.ObservedGeneration == set.Generation && s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas, "status is %+v", s)
	})
	rollout.ComesTrue(t)
	assert.Equal(t, story.Identities(pods), story.Identities(world.Pods(t, set.Namespace)), "in place")
	story.Gone(t, world, job)
}

func TestImagesArePulledAheadOfADaemonSet(t *testing.T) {
	t.Parallel()
	const before, after = "example.com/ahead/daemon:v1", "example.com/ahead/daemon:v2"
	all := int32(len(nodes()))
	publish(t, "v1", before)
	publish(t, "v2", after)
	givenRole(t, "../../../daemonset/config/predownload/role.yaml")
	world.TurnOn(t, "daemonset-manager", "PreDownloadImageForDaemonSetUpdate")
	set := &daemonsets.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace(t), Name: "web", Annotations: parallelPulls()}}
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	set.Spec.Template = webTemplate(before)
	set.Spec.Template.Spec.Tolerations = newTemplate().Spec.Tolerations
	set.Spec.UpdateStrategy.Type = daemonsets.RollingUpdateStrategyType
	set.Spec.UpdateStrategy.RollingUpdate = &daemonsets.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromInt32(1))}
	require.NoError(t, world.Client.Create(t.Context(), set))
	story.Reaches(t, world, set, "available", func(set *daemonsets.DaemonSet) error {
		return story.Want(set.Status.NumberAvailable == all, "status is %+v", set.Status)
	})

	ahead := forecasts.Edit(t, world, set, func(set *daemonsets.DaemonSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(all))
		set.Spec.Template.Spec.Containers[0].Image = after
	})
	job := pulledAhead(t, set, before, after)
	ahead.ComesTrue(t)
	rollout := forecasts.Edit(t, world, set, func(set *daemonsets.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = nil })
	story.Reaches(t, world, set, "updated", func(set *daemonsets.DaemonSet) error {
		s := &set.Status
		return story.Want(s.ObservedGeneration == set.Generation && s.UpdatedNumberScheduled == all && s.NumberAvailable == all, "status is %+v", s)
	})
	rollout.ComesTrue(t)
	story.Gone(t, world, job)
}

// webTemplate is what the pods of a workload are made from.
func webTemplate(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			Containers:                    []corev1.Container{{Name: "main", Image: image, ImagePullPolicy: corev1.PullIfNotPresent}},
		},
	}
}
