package daemonset_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/workloads"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/config"
)

// sized are the labels of a node with a number: by label among-n a set asks for the first n nodes.
func sized(number, most int) map[string]string {
	labels := map[string]string{}
	for n := number + 1; n <= most; n++ {
		labels[fmt.Sprintf("example.com/among-%d", n)] = "true"
	}
	return labels
}

// givenMoreNodes runs further simulated nodes until the end of the test, and takes them away then.
func givenMoreNodes(t *testing.T, count int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	nodes, err := simnodes.Start(ctx, env.ConfigAs(t, simnodes.UserAgent), simnodes.Options{
		Nodes: count, Prefix: "more-", LeasePeriod: simnodes.NoLeases, Bind: true,
		Labels: func(i int) map[string]string { return sized(i, count) },
	})
	t.Cleanup(func() {
		stop()
		for i := range count {
			_ = env.Client(t).Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("more-%d", i)}})
		}
	})
	require.NoError(t, err)
	require.Len(t, nodes.Names(), count)
}

// While the server refuses its writes the operator is quiet and pods serve; what was wanted happens within a minute
// after that.
func TestRefusals(t *testing.T) {
	env.Need(t)
	givenMoreNodes(t, 5)
	role := testenv.ManifestsOf[rbacv1.ClusterRole](t, config.Files, "rbac/manager_role.yaml", "ClusterRole")[0]
	role.Rules = append(role.Rules, testenv.ManifestsOf[rbacv1.ClusterRole](t, config.Files, "rbac/cluster_role.yaml", "ClusterRole")[0].Rules...)
	refused := workloads.Refused{
		Env: &env, UserAgent: userAgent, Resource: "daemonsets",
		FailedUpdate: v1beta1.DaemonSetFailedUpdatePod, FailedScale: v1beta1.DaemonSetFailedCreatePod,
		Start: func(t *testing.T, namespace string) {
			t.Helper()
			startController(t, env, namespace)
		},
		StartAs: func(t *testing.T, config *rest.Config, namespace string) {
			t.Helper()
			over := env
			over.Config = config
			startController(t, over, namespace)
		},
		Role: role,
		New: func(namespace string, replicas int32) client.Object {
			return newSet(namespace, inPlace, func(s *v1beta1.DaemonSet) {
				s.Spec.Template.Spec.NodeSelector = map[string]string{fmt.Sprintf("example.com/among-%d", replicas): "true"}
			})
		},
		SetImage: func(set client.Object, name string) { image(name)(set.(*v1beta1.DaemonSet)) },
		Condition: func(set client.Object, name string) string {
			if c := conditions.Get(set.(*v1beta1.DaemonSet).Status.Conditions, name); c != nil && c.Status == corev1.ConditionTrue {
				return c.Message
			}
			return ""
		},
	}
	t.Run("update", refused.TestUpdate)
	t.Run("creation", refused.TestCreation)
	t.Run("rights", refused.TestRights)
}
