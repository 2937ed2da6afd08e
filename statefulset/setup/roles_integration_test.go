package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/config"
)

// The operator is refused nothing while it makes, updates, resizes and removes pods with claims.
func TestTheShippedRolesAreEnough(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	env.InstallCRDs(t, envtest.CRDInstallOptions{Paths: []string{"../config/crd/statefulsets.yaml"}})
	_, err := simnodes.Start(t.Context(), env.ConfigAs(t, simnodes.UserAgent), simnodes.Options{Nodes: 2, Bind: true, LeasePeriod: simnodes.NoLeases})
	require.NoError(t, err)
	assertAllowed := operators.Granted{
		Env: &env, Operator: Operator(), Files: config.Files,
		Roles: []string{"rbac/manager_role.yaml", "rbac/cluster_role.yaml", "rbac/namespace_role.yaml", "resize/role.yaml", "predownload/role.yaml"},
		Flags: []string{"--feature-gates=StatefulSetAutoResizePVCGate=true,PreDownloadImageForInPlaceUpdate=true"},
	}.Start(t)

	set := &v1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: env.Namespace(t)},
		Spec: v1beta1.StatefulSetSpec{
			Replicas:                  new(int32(2)),
			Selector:                  &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			Template:                  gen.Template(gen.Label("app", "db"), gen.Image("main", "app:1")),
			VolumeClaimTemplates:      []corev1.PersistentVolumeClaim{gen.Claim("data", "1Gi")},
			VolumeClaimUpdateStrategy: v1beta1.VolumeClaimUpdateStrategy{Type: v1beta1.OnPodRollingUpdate},
			PersistentVolumeClaimRetentionPolicy: &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
			},
			UpdateStrategy: v1beta1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &v1beta1.RollingUpdateStatefulSetStrategy{PodUpdatePolicy: v1beta1.InPlaceIfPossible},
			},
		},
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "none.example.com", AllowVolumeExpansion: new(true)}
	require.NoError(t, c.Create(t.Context(), class))
	set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = &class.Name
	set.Spec.Template.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "InPlaceUpdateReady"}}
	require.NoError(t, c.Create(t.Context(), set))
	reaches(t, set, 2)
	testenv.Edit(t, c, set, func(s *v1beta1.StatefulSet) {
		s.Spec.Template.Spec.Containers[0].Image = "app:2"
		s.Spec.VolumeClaimTemplates[0].Spec.Resources = gen.Claim("data", "2Gi").Spec.Resources
	})
	reaches(t, set, 2)
	testenv.Edit(t, c, set, func(s *v1beta1.StatefulSet) { s.Spec.Replicas = new(int32(1)) })
	reaches(t, set, 1)

	assertAllowed()
}

// reaches waits until the set has that many pods and all are ready and updated. It gives claims the size
// that they ask for meanwhile.
func reaches(t *testing.T, set *v1beta1.StatefulSet, pods int32) {
	t.Helper()
	c := env.Client(t)
	await.Until(t, func(check *assert.CollectT) {
		var claims corev1.PersistentVolumeClaimList
		require.NoError(check, c.List(t.Context(), &claims, client.InNamespace(set.Namespace)))
		for i := range claims.Items {
			claim := &claims.Items[i]
			claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: claim.Spec.Resources.Requests}
			require.NoError(check, c.Status().Update(t.Context(), claim))
		}
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		status := set.Status
		assert.Equal(check, []any{set.Generation, pods, pods, pods},
			[]any{status.ObservedGeneration, status.Replicas, status.UpdatedReadyReplicas, status.UpdatedReplicas})
	})
}
