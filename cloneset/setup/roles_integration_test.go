package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/config"
)

// The operator is refused nothing while it makes, adopts, updates and removes pods with claims.
func TestTheShippedRolesAreEnough(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	env.InstallCRDs(t, envtest.CRDInstallOptions{Paths: []string{"../config/crd/clonesets.yaml"}})
	_, err := simnodes.Start(t.Context(), env.ConfigAs(t, simnodes.UserAgent), simnodes.Options{Nodes: 2, Bind: true, LeasePeriod: simnodes.NoLeases})
	require.NoError(t, err)
	assertAllowed := operators.Granted{
		Env: &env, Operator: Operator(), Files: config.Files,
		Roles: []string{"rbac/manager_role.yaml", "rbac/cluster_role.yaml", "rbac/namespace_role.yaml"},
	}.Start(t)

	set := &v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: env.Namespace(t)},
		Spec: v1beta1.CloneSetSpec{
			Replicas:             new(int32(2)),
			Selector:             &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template:             gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{gen.Claim("data", "1Gi")},
			UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{PodUpdatePolicy: v1beta1.InPlaceIfPossible},
			},
		},
	}
	orphan := gen.Pod("orphan", gen.Label("app", "web"), gen.Image("main", "app:1"))
	orphan.ObjectMeta = metav1.ObjectMeta{Namespace: set.Namespace, Name: orphan.Name, Labels: orphan.Labels}
	orphan.Spec.NodeName, orphan.Status = "", corev1.PodStatus{}
	require.NoError(t, c.Create(t.Context(), orphan))
	require.NoError(t, c.Create(t.Context(), set))
	reaches(t, set, 2)
	testenv.Edit(t, c, set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = "app:2" })
	reaches(t, set, 2)
	testenv.Edit(t, c, set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(1)) })
	reaches(t, set, 1)

	assertAllowed()
}

// reaches waits until the set has that many pods and all are ready and updated.
func reaches(t *testing.T, set *v1beta1.CloneSet, pods int32) {
	t.Helper()
	c := env.Client(t)
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		status := set.Status
		assert.Equal(check, []any{set.Generation, pods, pods, pods},
			[]any{status.ObservedGeneration, status.Replicas, status.UpdatedReadyReplicas, status.UpdatedReplicas})
	})
}
