package config_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/config"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
	"github.com/flotilla-project/flotilla/spread/setup"
)

// G6: a spread of a kind between which and its pods there is one that the manager may not list keeps no worker from the
// other spreads, and is seen to when the right has come.
func TestAKindThatMayNotBeListedKeepsNobodyWaiting(t *testing.T) {
	env.Need(t)
	operators.Granted{
		Env: &env, Operator: setup.Operator(), Files: config.Files, Flags: []string{"--workloadspread-workers=1"},
		Roles: []string{"rbac/manager_role.yaml", "rbac/cluster_role.yaml", "rbac/namespace_role.yaml", "rbac/kinds_role.yaml"},
	}.Start(t)
	c, namespace := env.Client(t), env.Namespace(t)
	makeFor(t, c, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "flotilla-system", Name: workloads.ConfigMapName},
		Data: map[string]string{workloads.ConfigMapKey: `{"workloads":[{"Version":"v1","Kind":"ReplicationController",
			"subResources":[{"Group":"apps","Version":"v1","Kind":"ControllerRevision"}]}]}`},
	})
	grant(t, c, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"replicationcontrollers"}, Verbs: []string{"get", "list", "watch"}})
	require.NoError(t, c.Create(t.Context(), &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: corev1.ReplicationControllerSpec{Selector: map[string]string{"app": "web"}, Template: &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
		}},
	}))
	create := func(apiVersion, kind, name string) *v1beta1.WorkloadSpread {
		s := &v1beta1.WorkloadSpread{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		s.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: apiVersion, Kind: kind, Name: "web"}
		s.Spec.Subsets = []v1beta1.WorkloadSpreadSubset{{Name: "all", MaxReplicas: new(intstr.FromInt32(1))}}
		makeFor(t, c, s)
		return s
	}
	known := func(s *v1beta1.WorkloadSpread) {
		await.Until(t, func(check *assert.CollectT) {
			require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(s), s))
			assert.Equal(check, s.Generation, s.Status.ObservedGeneration)
		})
	}
	waiting := create("v1", "ReplicationController", "waiting")
	known(create("apps/v1", "ReplicaSet", "other"))
	assert.Zero(t, waiting.Status.ObservedGeneration)
	await.Until(t, func(check *assert.CollectT) {
		var events eventsv1.EventList
		require.NoError(check, c.List(t.Context(), &events, client.InNamespace(namespace)))
		require.NotEmpty(check, events.Items)
		for _, e := range events.Items {
			assert.Equal(check, "waiting TargetUnknown", e.Regarding.Name+" "+e.Reason)
			assert.Contains(check, e.Note, "cannot list resource \"controllerrevisions\"")
		}
	})
	grant(t, c, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: []string{"get", "list", "watch"}})
	known(waiting)
}

// grant gives the manager a right.
func grant(t *testing.T, c client.Client, rule rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "more-"}, Rules: []rbacv1.PolicyRule{rule}}
	makeFor(t, c, role)
	makeFor(t, c, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "flotilla-system", Name: "spread-manager"}},
	})
}

// makeFor creates an object and deletes it at the end of the test: operators of other tests would see it too.
func makeFor(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	require.NoError(t, c.Create(t.Context(), object))
	t.Cleanup(func() { assert.NoError(t, c.Delete(context.WithoutCancel(t.Context()), object)) })
}
