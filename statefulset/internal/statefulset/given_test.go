package statefulset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// newSet is a Parallel StatefulSet "web" with image app:1.
func newSet(namespace string, replicas int32, policy v1beta1.PodUpdatePolicy, maxUnavailable int32) *v1beta1.StatefulSet {
	template := gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1"))
	if policy != v1beta1.ReCreate {
		template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}}
	}
	return &v1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: v1beta1.StatefulSetSpec{
			Replicas:            &replicas,
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:            &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template:            template,
			UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{
				Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{
					PodUpdatePolicy: policy, MaxUnavailable: new(intstr.FromInt32(maxUnavailable)),
				},
			},
		},
	}
}

func image(name string) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = name }
}

// argument changes what only a new pod can have.
func argument(text string) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Args = []string{text} }
}

func replicas(n int32) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) { set.Spec.Replicas = &n }
}

// keep leaves n pods on the current revision.
func keep(n int32) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = &n }
}

func both(a, b func(*v1beta1.StatefulSet)) func(*v1beta1.StatefulSet) {
	return func(set *v1beta1.StatefulSet) {
		a(set)
		b(set)
	}
}

// settles waits until the status describes the spec and all pods are as wanted.
func settles(t *testing.T, c client.Client, set *v1beta1.StatefulSet) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		assert.Equal(collect, set.Generation, set.Status.ObservedGeneration)
		assert.Equal(collect, *set.Spec.Replicas, set.Status.AvailableReplicas, "%+v", set.Status)
		assert.Equal(collect, *set.Spec.Replicas, set.Status.Replicas)
		assert.Equal(collect, "True", conditionOf(set, "Ready"), "%+v", set.Status.Conditions)
	})
}

func conditionOf(set *v1beta1.StatefulSet, name string) string {
	for _, c := range set.Status.Conditions {
		if c.Type == name {
			return string(c.Status)
		}
	}
	return ""
}

func names(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, pods[i].Name)
	}
	return all
}

// claims are the names of the namespace's claims that nobody has deleted.
func claims(t testing.TB, namespace string) []string {
	t.Helper()
	list := &corev1.PersistentVolumeClaimList{}
	require.NoError(t, env.Client(t).List(t.Context(), list, client.InNamespace(namespace)))
	var all []string
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			all = append(all, list.Items[i].Name)
		}
	}
	return all
}
