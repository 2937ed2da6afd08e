package statefulset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// Nothing but an annotation connects a claim with its set whose ordinal was scaled in while it had no pod.
func TestClaimsOfOrdinalsWithoutAPodAreFound(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 1, v1beta1.ReCreate, 1)
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{gen.Claim("data", "1Gi")}
	set.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: "Delete", WhenDeleted: "Retain"}
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	for name, uid := range map[string]string{"data-web-5": string(set.UID), "data-web-6": "another", "data-web-7": ""} {
		claim := gen.Claim(name, "1Gi")
		claim.Namespace, claim.Annotations = set.Namespace, map[string]string{v1beta1.DeleteWhenScaledAnnotation: uid}
		require.NoError(t, c.Create(t.Context(), &claim))
	}
	await.Until(t, func(collect *assert.CollectT) {
		assert.ElementsMatch(collect, []string{"data-web-0", "data-web-6", "data-web-7"}, claims(t, set.Namespace))
	})
}

// The server lets a claim ask for less than before as long as that is more than it has.
func TestAGrowthThatHasFailedIsLowered(t *testing.T) {
	givenController(t, func(g *plan.FeatureGates) { g.AutoResizePVC = true })
	c := env.Client(t)
	require.NoError(t, c.Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "limited"}, Provisioner: "example.com/none", AllowVolumeExpansion: new(true),
	}))
	set := newSet(env.Namespace(t), 1, v1beta1.ReCreate, 1)
	claim := gen.Claim("data", "1Gi")
	claim.Spec.StorageClassName = new("limited")
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	set.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdate
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	provision(t, c, set.Namespace, "data-web-0", "1Gi")
	wants := func(size string) {
		testenv.Edit(t, c, set, func(s *v1beta1.StatefulSet) {
			s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
		})
		await.Until(t, func(collect *assert.CollectT) {
			require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Namespace: set.Namespace, Name: "data-web-0"}, &claim))
			assert.Equal(collect, size, claim.Spec.Resources.Requests.Storage().String())
		})
	}
	wants("100Gi")
	claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
		Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue, Message: "too large",
	}}
	require.NoError(t, c.Status().Update(t.Context(), &claim))
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		assert.Equal(collect, "True", conditionOf(set, v1beta1.StatefulSetVolumeResizeFailed))
	})
	wants("5Gi")
}
