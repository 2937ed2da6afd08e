package imagepulljob_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// cloneSets is the definition of a kind like CloneSet, which another module brings.
func cloneSets() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "clonesets.apps.kruise.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "apps.kruise.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "clonesets", Singular: "cloneset", Kind: "CloneSet", ListKind: "CloneSetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1beta1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}

// A node that is not ready waits for the others, whatever its name.
func TestReadyNodesPullFirst(t *testing.T) {
	c := givenController(t)
	names := givenNodes(t, c, 2)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: names[0]}}
	require.NoError(t, c.Create(t.Context(), node))
	t.Cleanup(func() { require.NoError(t, client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), node))) })
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	require.NoError(t, c.Status().Update(t.Context(), node))
	givenJob(t, c, env.Namespace(t))
	image := &nodeimage.NodeImage{}
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Name: names[1]}, image))
		assert.Len(collect, image.Spec.Images, 1)
	})
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: names[0]}, image))
	assert.Empty(t, image.Spec.Images)
}

// The first node to pull is that of the pod which the workload updates first, whatever its name.
func TestTheOrderOfAWorkloadIsThatOfItsPulls(t *testing.T) {
	c := givenController(t)
	env.InstallCRDs(t, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{cloneSets()}})
	names, namespace := givenNodes(t, c, 3), env.Namespace(t)
	set := &unstructured.Unstructured{Object: map[string]any{"spec": testenv.Fields(t, `{updateStrategy: {rollingUpdate: {
		priorityStrategy: {weightPriority: [{weight: 9, matchSelector: {matchLabels: {tier: test}}}]}}}}`)}}
	set.SetAPIVersion("apps.kruise.io/v1beta1")
	set.SetKind("CloneSet")
	set.SetNamespace(namespace)
	set.SetName("web")
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, client.IgnoreAlreadyExists(c.Create(t.Context(), set)), "its kind is served")
	})
	for i, tier := range []string{"live", "live", "test"} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-" + string(rune('a'+i)), Labels: map[string]string{"app": "web", "tier": tier}},
			Spec:       corev1.PodSpec{NodeName: names[i], Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
		}
		require.NoError(t, c.Create(t.Context(), pod))
	}
	job := givenJob(t, c, namespace, func(job *v1beta1.ImagePullJob) {
		job.Spec.Selector, job.Spec.PodSelector = nil, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())}
	})
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
		assert.Equal(collect, [2]int32{3, 1}, [2]int32{job.Status.Desired, job.Status.Active})
	})
	for i, begun := range []bool{false, false, true} {
		image := &nodeimage.NodeImage{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: names[i]}, image))
		assert.Equal(t, begun, len(image.Spec.Images) == 1, names[i])
	}
}
