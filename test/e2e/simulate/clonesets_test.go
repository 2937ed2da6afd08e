package simulate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	budget "github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/kustomize/progress"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

const app = "flotilla/demo-app:"

// web is a CloneSet of six pods, two of which may be unavailable.
func web(namespace string) *v1beta1.CloneSet {
	return &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: v1beta1.CloneSetSpec{
			Replicas: new(int32(6)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "main", Image: app + "v1",
						Env:       []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}},
					}},
					TerminationGracePeriodSeconds: new(int64(5)),
				},
			},
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type: v1beta1.RollingUpdate,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: v1beta1.InPlaceIfPossible, MaxUnavailable: new(intstr.FromInt32(1)),
				},
			},
		},
	}
}

func main(set *v1beta1.CloneSet) *corev1.Container { return &set.Spec.Template.Spec.Containers[0] }

func image(version string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { main(set).Image = app + version }
}

func partition(n int) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt(n)) }
}

// storing gives each pod a claim of the size.
func storing(size string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim(size)}
	}
}

func claim(size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

// Each edit does what its forecast says.
func TestEditsOfCloneSetsAreForetold(t *testing.T) {
	for name, c := range map[string]rollout[*v1beta1.CloneSet]{
		"an image":              {edit: image("v2")},
		"an image, two at once": {before: unavailable("2"), edit: image("v2")},
		"a port":                {edit: func(set *v1beta1.CloneSet) { main(set).Ports = []corev1.ContainerPort{{ContainerPort: 81}} }},
		"resources": {edit: func(set *v1beta1.CloneSet) {
			main(set).Resources.Requests[corev1.ResourceCPU] = resource.MustParse("20m")
		}},
		"the order of variables": {edit: func(set *v1beta1.CloneSet) {
			e := main(set).Env
			e[0], e[1] = e[1], e[0]
		}},
		"a selector of nodes": {edit: func(set *v1beta1.CloneSet) {
			set.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"}
		}},
		"a partition": {edit: func(set *v1beta1.CloneSet) {
			image("v2")(set)
			partition(4)(set)
		}},
		"a surge": {before: func(set *v1beta1.CloneSet) {
			r := set.Spec.UpdateStrategy.RollingUpdate
			r.MaxSurge, r.MaxUnavailable, r.PodUpdatePolicy = new(intstr.FromInt32(2)), new(intstr.FromInt32(0)), v1beta1.ReCreate
		}, edit: image("v2")},
		"a scale":            {edit: func(set *v1beta1.CloneSet) { set.Spec.Replicas = new(int32(8)) }},
		"the size of claims": {before: storing("1Mi"), edit: storing("2Mi")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.play(t, web(world.Namespace(t)))
		})
	}
}

func unavailable(n string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.Parse(n))
	}
}

// A rollout that cannot end is foretold with the pod that is in its way.
func TestACrashIsForetold(t *testing.T) {
	t.Parallel()
	set := web(world.Namespace(t))
	given(t, set)
	rollout := forecasts.Edit(t, world, set, image("crash"), "--crash", "demo-app:crash")
	assert.Equal(t, progress.Failed, rollout.Forecast.Phase)
	assert.Contains(t, rollout.Forecast.Message, "CrashLoopBackOff")
	story.Reaches(t, world, set, "the crash of its first pod", func(set *v1beta1.CloneSet) error {
		c := story.Condition(set, "Ready")
		return story.Want(c.Status == metav1.ConditionFalse && set.Status.UpdatedReplicas == 1, "%+v", c)
	})
	rollout.ComesTrue(t)
}

// A budget that lets fewer pods go than the set would is foretold.
func TestABudgetIsForetold(t *testing.T) {
	t.Parallel()
	set := web(world.Namespace(t))
	unavailable("3")(set)
	given(t, set)
	spare := &budget.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: set.Namespace},
		Spec: budget.PodUnavailableBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, MaxUnavailable: new(intstr.FromInt32(1)),
		},
	}
	require.NoError(t, world.Client.Create(t.Context(), spare))
	story.Reaches(t, world, spare, "that it has counted", func(b *budget.PodUnavailableBudget) error {
		return story.Want(b.Status.ObservedGeneration == b.Generation && b.Status.UnavailableAllowed == 1, "status is %+v", b.Status)
	})
	rollout := forecasts.Edit(t, world, set, image("v2"))
	story.Settles(t, world, set, nil)
	rollout.ComesTrue(t)
}
