package status_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/status"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) { env.Run(m, testenv.Options{}) }

type recorder struct{ versions []string }

func (r *recorder) Written(workload types.NamespacedName, o client.Object) {
	r.versions = append(r.versions, workload.Name+" "+o.GetResourceVersion())
}

func deployment(t *testing.T, c client.Client) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"app": "test"}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "image"}}},
			},
		},
	}
	require.NoError(t, c.Create(t.Context(), d))
	return d
}

func TestPatchWritesOnceAndOnlyTheStatus(t *testing.T) {
	c := env.Client(t)
	before := deployment(t, c)
	audit := env.Audit(t)
	var seen recorder
	w := status.Writer{Client: env.ClientAs(t, "writer"), Recorder: &seen}

	after := before.DeepCopy()
	after.Status.ReadyReplicas, after.Status.Replicas = 1, 2
	after.Labels = map[string]string{"not": "written"}
	wrote, err := w.Patch(t.Context(), before, after)
	require.NoError(t, err)
	assert.True(t, wrote)
	now := &appsv1.Deployment{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(before), now))
	assert.Equal(t, after.Status, now.Status)
	assert.Empty(t, now.Labels)
	assert.Equal(t, []string{"web " + now.ResourceVersion}, seen.versions)

	wrote, err = w.Patch(t.Context(), now, now.DeepCopy())
	require.NoError(t, err)
	assert.False(t, wrote)
	onlyMeta := now.DeepCopy()
	onlyMeta.Labels = map[string]string{"not": "written"}
	wrote, err = w.Patch(t.Context(), now, onlyMeta)
	require.NoError(t, err)
	assert.False(t, wrote)
	cleared := now.DeepCopy()
	cleared.Status = appsv1.DeploymentStatus{}
	wrote, err = w.Patch(t.Context(), now, cleared)
	require.NoError(t, err)
	assert.True(t, wrote)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(before), now))
	assert.Zero(t, now.Status)
	assert.Equal(t, map[string]int{"patch deployments/status": 2}, audit.Writes(t, "writer"))
}

func TestPatchNeverLosesAnotherWritersCondition(t *testing.T) {
	c := env.Client(t)
	before := deployment(t, c)
	theirs := before.DeepCopy()
	theirs.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Theirs", Status: corev1.ConditionTrue}}
	require.NoError(t, c.Status().Update(t.Context(), theirs))

	after := before.DeepCopy()
	after.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Ours", Status: corev1.ConditionTrue}}
	var seen recorder
	wrote, err := status.Writer{Client: c, Recorder: &seen}.Patch(t.Context(), before, after)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	assert.False(t, wrote)
	assert.Empty(t, seen.versions)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(before), after))
	require.Len(t, after.Status.Conditions, 1)
	assert.EqualValues(t, "Theirs", after.Status.Conditions[0].Type)
}

func TestPatchOfAnObjectThatIsGoneIsNotFound(t *testing.T) {
	c := env.Client(t)
	before := deployment(t, c)
	require.NoError(t, c.Delete(t.Context(), before.DeepCopy()))
	after := before.DeepCopy()
	after.Status.Replicas = 1
	wrote, err := status.Writer{Client: c, Recorder: &recorder{}}.Patch(t.Context(), before, after)
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	assert.False(t, wrote)
}
