package cloneset_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/workloads"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/config"
)

// While the server refuses its writes the operator is quiet and pods serve; what was wanted happens
// within a minute after that.
func TestRefusals(t *testing.T) {
	givenNodes(t, simnodes.Options{Bind: true})
	role := testenv.ManifestsOf[rbacv1.ClusterRole](t, config.Files, "rbac/manager_role.yaml", "ClusterRole")[0]
	role.Rules = append(role.Rules, testenv.ManifestsOf[rbacv1.ClusterRole](t, config.Files, "rbac/cluster_role.yaml", "ClusterRole")[0].Rules...)
	refused := workloads.Refused{
		Env: &env, UserAgent: userAgent, Resource: "clonesets",
		FailedUpdate: v1beta1.CloneSetFailedUpdate, FailedScale: v1beta1.CloneSetFailedScale,
		Start: func(t *testing.T, namespace string) {
			t.Helper()
			startController(t, namespace)
		},
		StartAs: func(t *testing.T, config *rest.Config, namespace string) {
			t.Helper()
			over := env
			over.Config = config
			startControllerIn(t, over, namespace)
		},
		Role: role,
		New: func(namespace string, replicas int32) client.Object {
			return newSet(namespace, replicas, v1beta1.InPlaceIfPossible, 1)
		},
		SetImage: func(set client.Object, name string) { image(name)(set.(*v1beta1.CloneSet)) },
		Condition: func(set client.Object, name string) string {
			if c := conditions.Get(set.(*v1beta1.CloneSet).Status.Conditions, name); c != nil && c.Status == corev1.ConditionTrue {
				return c.Message
			}
			return ""
		},
	}
	t.Run("update", refused.TestUpdate)
	t.Run("creation", refused.TestCreation)
	t.Run("rights", refused.TestRights)
}
