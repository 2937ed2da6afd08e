package setup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
)

// count runs the controllers, without webhooks, until the test ends.
func count(t *testing.T) {
	t.Helper()
	s, environment := replica(t, env, "", features.Defaults(featuregates.All()...))
	require.NoError(t, s.setup(t.Context(), environment))
	env.Start(t, environment.Manager)
}

// A budget of OpenKruise goes on where it is: pods that it has marked are not written, a granted update that the node has
// not seen still counts, and a granted deletion that has happened does not.
func TestWhatOpenKruiseHasMadeIsTakenOver(t *testing.T) {
	env.Need(t)
	answerWebhooks(t)
	a := givenApp(t, env.Client(t), 0)
	deployment := a.deployment(t)
	before := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = new(int32(4))
	require.NoError(t, a.Patch(t.Context(), deployment, before))
	for range 4 {
		a.addPod(t, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{v1beta1.RelatedAnnotation: "web", v1beta1.LegacyRelatedAnnotation: "web"}
		})
	}
	updated := a.pods[1]
	require.NoError(t, a.patch(t, updated, newImage))
	require.NoError(t, a.Get(t.Context(), client.ObjectKeyFromObject(updated), updated))
	before = client.MergeFrom(updated.DeepCopy())
	updated.Status.ObservedGeneration = updated.Generation - 1
	require.NoError(t, a.Status().Patch(t.Context(), updated, before))

	b := newBudget(a.namespace)
	b.Spec.MaxUnavailable = new(intstr.FromString("50%"))
	require.NoError(t, a.Create(t.Context(), b))
	at := metav1.NewTime(time.Now().Add(-5 * time.Second)).Rfc3339Copy()
	b.Status = v1beta1.PodUnavailableBudgetStatus{
		ObservedGeneration: b.Generation, TotalReplicas: 4, DesiredAvailable: 2, CurrentAvailable: 2,
		DisruptedPods: map[string]metav1.Time{"web-9": at}, UnavailablePods: map[string]metav1.Time{updated.Name: at},
	}
	require.NoError(t, a.Status().Update(t.Context(), b))

	count(t)
	theirs := b.DeepCopy()
	await.Until(t, func(check *assert.CollectT) {
		assert.Equal(check, [4]int32{4, 2, 3, 1}, a.numbers(check, b))
		assert.NotNil(check, meta.FindStatusCondition(b.Status.Conditions, disruption.ConditionExhausted))
	})
	assert.Equal(t, theirs.Spec, b.Spec)
	assert.Equal(t, theirs.ObjectMeta.Generation, b.Generation)
	assert.Empty(t, b.Status.DisruptedPods)
	require.Contains(t, b.Status.UnavailablePods, updated.Name)
	assert.True(t, at.Equal(new(b.Status.UnavailablePods[updated.Name])))

	await.Until(t, func(check *assert.CollectT) {
		ns := &corev1.Namespace{}
		require.NoError(check, a.Get(t.Context(), client.ObjectKey{Name: a.namespace}, ns))
		assert.Equal(check, "true", ns.Labels[v1beta1.NamespaceLabel])
	})
	a.guarded(t, a.pods[0])
	for _, pod := range a.pods {
		version := pod.ResourceVersion
		require.NoError(t, a.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		assert.Equal(t, version, pod.ResourceVersion, "it is marked already")
	}
	await.Until(t, func(check *assert.CollectT) { // the webhook's cache shows the new numbers
		assert.NoError(check, a.Delete(t.Context(), a.pods[0].DeepCopy()))
	})
	require.ErrorContains(t, a.Delete(t.Context(), a.pods[2].DeepCopy()), "2 available, 2 required of 4")
	require.NoError(t, a.Delete(t.Context(), updated.DeepCopy()), "it has a grant")
}
