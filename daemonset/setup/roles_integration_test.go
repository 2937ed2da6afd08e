package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/config"
)

// The operator is refused nothing while it makes, updates, recreates and removes pods.
func TestTheShippedRolesAreEnough(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	env.InstallCRDs(t, envtest.CRDInstallOptions{Paths: []string{"../config/crd/daemonsets.yaml"}})
	_, err := simnodes.Start(t.Context(), env.ConfigAs(t, simnodes.UserAgent), simnodes.Options{Nodes: 2, Bind: true, LeasePeriod: simnodes.NoLeases})
	require.NoError(t, err)
	assertAllowed := operators.Granted{
		Env: &env, Operator: Operator(), Files: config.Files,
		Roles: []string{"rbac/manager_role.yaml", "rbac/cluster_role.yaml", "rbac/namespace_role.yaml", "predownload/role.yaml"},
		Flags: []string{"--feature-gates=PreDownloadImageForDaemonSetUpdate=true"},
	}.Start(t)

	set := &v1beta1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: env.Namespace(t)},
		Spec: v1beta1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
			UpdateStrategy: v1beta1.DaemonSetUpdateStrategy{
				Type:          v1beta1.RollingUpdateStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateDaemonSet{RollingUpdateType: v1beta1.InPlaceRollingUpdateType},
			},
		},
	}
	require.NoError(t, c.Create(t.Context(), set))
	reaches(t, set, 2)
	testenv.Edit(t, c, set, func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.Containers[0].Image = "app:2" })
	reaches(t, set, 2)
	testenv.Edit(t, c, set, func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.Containers[0].Args = []string{"again"} })
	reaches(t, set, 2)
	testenv.Edit(t, c, set, func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"no": "node"} })
	reaches(t, set, 0)

	assertAllowed()
}

// reaches waits until that many nodes should run a pod, and all have an updated and available one.
func reaches(t *testing.T, set *v1beta1.DaemonSet, nodes int32) {
	t.Helper()
	c := env.Client(t)
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		s := set.Status
		assert.Equal(check, []any{set.Generation, nodes, nodes, nodes, int32(0)},
			[]any{s.ObservedGeneration, s.DesiredNumberScheduled, s.UpdatedNumberScheduled, s.NumberAvailable, s.NumberMisscheduled})
	})
}
