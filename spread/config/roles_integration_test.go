package config_test

import (
	"path/filepath"
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
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/config"
	"github.com/flotilla-project/flotilla/spread/setup"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{CRDs: []string{filepath.Join("crd", "workloadspreads.yaml")}, Scheme: testenv.Scheme(v1beta1.AddToScheme)})
}

// The manager is refused nothing while it takes a pod of a Deployment in, marks it and counts it.
func TestTheShippedRolesAreEnough(t *testing.T) {
	env.Need(t)
	assertAllowed := operators.Granted{
		Env: &env, Operator: setup.Operator(), Files: config.Files,
		Roles: []string{"rbac/manager_role.yaml", "rbac/cluster_role.yaml", "rbac/namespace_role.yaml", "rbac/kinds_role.yaml", "policy/*.yaml"},
	}.Start(t)
	c, namespace := env.Client(t), env.Namespace(t)
	labels := map[string]string{"app": "web"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
	}}
	require.NoError(t, c.Create(t.Context(), deployment))
	replicaSet := &appsv1.ReplicaSet{ObjectMeta: *meta.DeepCopy(), Spec: appsv1.ReplicaSetSpec{Selector: deployment.Spec.Selector, Template: template}}
	replicaSet.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	require.NoError(t, c.Create(t.Context(), replicaSet))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	require.NoError(t, c.Create(t.Context(), node))
	node.Spec.Taints = nil // the API server marks new nodes as not ready
	require.NoError(t, c.Update(t.Context(), node))
	pod := &corev1.Pod{ObjectMeta: *meta.DeepCopy(), Spec: template.Spec}
	pod.Spec.NodeName = node.Name
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(replicaSet, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	require.NoError(t, c.Create(t.Context(), pod))

	spread := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	spread.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	spread.Spec.Subsets = []v1beta1.WorkloadSpreadSubset{{Name: "all", MaxReplicas: new(intstr.FromString("100%"))}}
	require.NoError(t, c.Create(t.Context(), spread))
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		assert.Equal(check, `{"name":"web","subset":"all"}`, pod.Annotations[v1beta1.MatchedAnnotation])
		assert.Equal(check, "100", pod.Annotations[contract.PodDeletionCostAnnotation])
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(spread), spread))
		require.Len(check, spread.Status.SubsetStatuses, 1)
		assert.EqualValues(check, 1, spread.Status.SubsetStatuses[0].Replicas)
		assert.EqualValues(check, 1, spread.Status.SubsetStatuses[0].MissingReplicas)
	})
	assertAllowed()
}
