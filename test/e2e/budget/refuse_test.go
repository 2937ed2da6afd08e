package budget

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

func TestARefusedEvictionGoesOnWhenAPodIsBack(t *testing.T) {
	t.Parallel()
	pods := givenPods(t, world.Namespace(t), "a", "b", "c")
	b := atLeast(pods[0].Namespace, 2)
	givenBudget(t, b, 3)
	end := world.Always(t, b.Namespace, story.AtLeastReady(2))
	require.NoError(t, evict(t.Context(), pods[0]))
	err := evict(t.Context(), pods[1])
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	require.ErrorContains(t, err, "PodUnavailableBudget "+b.Namespace+"/web refuses EVICT of pod b: 2 available, 2 required (minAvailable 2)")

	givenPods(t, b.Namespace, "d")
	story.Eventually(t, "the eviction of b", func(ctx context.Context) error { return evict(ctx, pods[1]) })
	end()
}

func TestWhatWouldGoBelowTheBudgetIsForbidden(t *testing.T) {
	t.Parallel()
	pods := givenPods(t, world.Namespace(t), "a", "b")
	b := atLeast(pods[0].Namespace, 2)
	givenBudget(t, b, 2)
	for _, how := range []client.DeleteOption{&client.DeleteOptions{}, client.DryRunAll, client.GracePeriodSeconds(0)} {
		err := world.Client.Delete(t.Context(), pods[0], how)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(t, err, "refuses DELETE of pod a: 2 available, 2 required")
	}
	image := client.RawPatch("application/strategic-merge-patch+json", []byte(`{"spec":{"containers":[{"name":"main","image":"`+app+`v2"}]}}`))
	err := world.Client.Patch(t.Context(), pods[0], image)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "refuses UPDATE of pod a")
	label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"example.io/tier":"front"}}}`))
	require.NoError(t, world.Client.Patch(t.Context(), pods[0], label), "labels disrupt nothing")

	story.Eventually(t, "an event of the refusal", func(ctx context.Context) error {
		list := &eventsv1.EventList{}
		err := world.Client.List(ctx, list, client.InNamespace(b.Namespace))
		told := slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "PubPreventPodDeletion" && e.Regarding.Name == "a"
		})
		return story.Want(err == nil && told, "there are %d others (%v)", len(list.Items), err)
	})
}

// What does not serve is free: a rollout that went wrong can be repaired.
func TestAPodThatIsNotReadyIsFree(t *testing.T) {
	t.Parallel()
	pods := givenPods(t, world.Namespace(t), "a")
	b := atLeast(pods[0].Namespace, 1)
	givenBudget(t, b, 1)
	broken := newPod(b.Namespace, "broken")
	broken.Spec.Containers[0].Image = app + "no-such-version"
	require.NoError(t, world.Client.Create(t.Context(), broken))
	story.Reaches(t, world, broken, "its mark", func(o *corev1.Pod) error {
		return story.Want(o.Annotations[v1beta1.RelatedAnnotation] == b.Name, "annotations are %v", o.Annotations)
	})
	require.True(t, apierrors.IsForbidden(world.Client.Delete(t.Context(), pods[0])))
	require.NoError(t, world.Client.Delete(t.Context(), broken))
}

// Either of both budgets refuses an eviction; a PodDisruptionBudget does not refuse a deletion.
func TestAPodDisruptionBudgetBesideIt(t *testing.T) {
	t.Parallel()
	pods := givenPods(t, world.Namespace(t), "a", "b")
	b := atLeast(pods[0].Namespace, 1)
	givenBudget(t, b, 2)
	givenDisruptionBudget(t, b.Namespace, 2)
	err := evict(t.Context(), pods[0])
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	require.ErrorContains(t, err, "disruption budget")
	require.NoError(t, world.Client.Delete(t.Context(), pods[0]), "the grant is for this pod")
	err = evict(t.Context(), pods[1])
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	require.ErrorContains(t, err, "refuses EVICT of pod b")

	require.NoError(t, world.Client.Delete(t.Context(), b))
	story.Eventually(t, "a refusal by the other budget alone", func(ctx context.Context) error {
		err := evict(ctx, pods[1])
		require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
		return story.Want(!strings.Contains(err.Error(), "PodUnavailableBudget"), "%v", err)
	})
}

// givenDisruptionBudget creates a PodDisruptionBudget, n of whose pods must stay, and waits until it counts that many.
func givenDisruptionBudget(t *testing.T, namespace string, n int32) {
	t.Helper()
	d := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels()}, MinAvailable: new(intstr.FromInt32(n)),
		},
	}
	require.NoError(t, world.Client.Create(t.Context(), d))
	story.Reaches(t, world, d, "its numbers", func(d *policyv1.PodDisruptionBudget) error {
		return story.Want(d.Status.ObservedGeneration == d.Generation && d.Status.CurrentHealthy == n, "status is %+v", d.Status)
	})
}

func TestADeletedBudgetFreesItsPods(t *testing.T) {
	t.Parallel()
	pods := givenPods(t, world.Namespace(t), "a", "b")
	b := atLeast(pods[0].Namespace, 2)
	givenBudget(t, b, 2)
	require.True(t, apierrors.IsForbidden(world.Client.Delete(t.Context(), pods[0])))
	require.NoError(t, world.Client.Delete(t.Context(), b))
	story.Eventually(t, "the deletion of a", func(ctx context.Context) error { return world.Client.Delete(ctx, pods[0]) })
	story.Eventually(t, "no mark", func(ctx context.Context) error {
		ns := &corev1.Namespace{}
		err := world.Client.Get(ctx, client.ObjectKey{Name: b.Namespace}, ns)
		_, labelled := ns.Labels[v1beta1.NamespaceLabel]
		return story.Want(err == nil && !labelled && marked(t, b) == 0, "%d pods are marked, labels are %v (%v)", marked(t, b), ns.Labels, err)
	})
}

// What v1alpha1 has no field for is an annotation there.
func TestAnOlderBudgetProtectsWhatItsAnnotationSays(t *testing.T) {
	t.Parallel()
	const older = `
apiVersion: policy.kruise.io/v1alpha1
kind: PodUnavailableBudget
metadata: {name: web, annotations: {kruise.io/pub-protect-operations: DELETE}}
spec: {selector: {matchLabels: {app: web}}, minAvailable: 2}`
	pods := givenPods(t, world.Namespace(t), "a", "b")
	out, err := world.Kubectl(t, older, "-n", pods[0].Namespace, "create", "-f", "-")
	require.NoError(t, err, out)
	b := atLeast(pods[0].Namespace, 2)
	guards(t, b, 2)
	assert.Equal(t, []v1beta1.PubOperation{v1beta1.DeleteOperation}, b.Spec.ProtectOperations)
	require.True(t, apierrors.IsForbidden(world.Client.Delete(t.Context(), pods[0])))
	require.NoError(t, evict(t.Context(), pods[1]))
}
