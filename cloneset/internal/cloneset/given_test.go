package cloneset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// newSet is a CloneSet "web" with image app:1.
func newSet(namespace string, replicas int32, policy v1beta1.PodUpdatePolicy, maxUnavailable int) *v1beta1.CloneSet {
	return &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: v1beta1.CloneSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				Type: v1beta1.RollingUpdate,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: policy, MaxUnavailable: new(intstr.FromInt(maxUnavailable)),
				},
			},
		},
	}
}

// edit patches the live set.
func edit(t *testing.T, c client.Client, set *v1beta1.CloneSet, change func(*v1beta1.CloneSet)) {
	t.Helper()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	before := set.DeepCopy()
	change(set)
	require.NoError(t, c.Patch(t.Context(), set, client.MergeFrom(before)))
}

func image(name string) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = name }
}

// eventually waits until the assertions hold.
func eventually(t *testing.T, check func(c *assert.CollectT)) {
	t.Helper()
	await.Until(t, check)
}

// settles waits until the status describes the spec and all pods are as wanted.
func settles(t *testing.T, c client.Client, set *v1beta1.CloneSet) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		assert.Equal(collect, set.Generation, set.Status.ObservedGeneration)
		assert.Equal(collect, *set.Spec.Replicas, set.Status.AvailableReplicas, "%+v", set.Status)
		assert.Equal(collect, *set.Spec.Replicas, set.Status.Replicas)
		assert.Equal(collect, "True", conditionOf(set, "Ready"))
	})
}

func conditionOf(set *v1beta1.CloneSet, name string) string {
	for _, c := range set.Status.Conditions {
		if c.Type == name {
			return string(c.Status)
		}
	}
	return ""
}
