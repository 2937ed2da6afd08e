package daemonset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// labelsOf are the hash labels of the revisions in the namespace, by name.
func labelsOf(t *testing.T, namespace string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, r := range revisionsOf(t, namespace) {
		all[r.Name] = r.Labels[contract.RevisionLabel]
	}
	return all
}

// A history that others have damaged has one revision of the template again, and every one its label. No pod restarts.
func TestADamagedHistoryIsRepaired(t *testing.T) {
	const cause = "kubernetes.io/change-cause"
	c, set := running(t, simnodes.Options{}, func(s *v1beta1.DaemonSet) { s.Annotations = map[string]string{cause: "the first"} })
	before := testenv.Identities(env.Pods(t, set.Namespace))
	first := revisionsOf(t, set.Namespace)[0]
	assert.Equal(t, "the first", first.Annotations[cause])

	require.NoError(t, c.Patch(t.Context(), first.DeepCopy(), client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"`+contract.RevisionLabel+`":null}}}`))))
	await.Until(t, func(collect *assert.CollectT) {
		assert.Equal(collect, map[string]string{first.Name: first.Name}, labelsOf(t, set.Namespace))
	})

	double := &appsv1.ControllerRevision{Data: first.Data, Revision: 7}
	double.Namespace, double.Name, double.OwnerReferences = set.Namespace, "web-again", first.OwnerReferences
	double.Labels = map[string]string{"app": "web", contract.RevisionLabel: "again"}
	require.NoError(t, c.Create(t.Context(), double))
	eventually(t, c, set, func(collect *assert.CollectT) {
		assert.Equal(collect, "again", set.Status.UpdateRevision)
		assert.Equal(collect, map[string]string{"web-again": "again"}, labelsOf(t, set.Namespace), "the one with the highest number")
		for _, o := range env.Pods(t, set.Namespace) {
			assert.Equal(collect, "again", revisionOf(&o))
		}
	})
	settles(t, c, set, nodeCount, nodeCount)
	assert.Equal(t, before, testenv.Identities(env.Pods(t, set.Namespace)))
}

// Older revisions are kept up to the limit, those that pods are of among them.
func TestTheHistoryIsLimited(t *testing.T) {
	c, set := running(t, simnodes.Options{}, func(s *v1beta1.DaemonSet) {
		s.Spec.UpdateStrategy = v1beta1.DaemonSetUpdateStrategy{Type: v1beta1.OnDeleteStrategyType}
		s.Spec.RevisionHistoryLimit = new(int32(1))
	})
	first := revisionsOf(t, set.Namespace)[0].Name
	for _, name := range []string{"app:2", "app:3", "app:4"} {
		testenv.Edit(t, c, set, image(name))
		settles(t, c, set, nodeCount, 0)
	}
	await.Until(t, func(collect *assert.CollectT) {
		left := labelsOf(t, set.Namespace)
		assert.Len(collect, left, 2)
		assert.Contains(collect, left, first, "its pods run")
		assert.Contains(collect, left, "web-"+set.Status.UpdateRevision)
	})
}

// A pod that its node has given up makes way for a healthy one.
func TestFailedPodsAreReplaced(t *testing.T) {
	c, set := running(t, simnodes.Options{})
	failed := env.Pods(t, set.Namespace)[0]
	broken := failed.DeepCopy()
	broken.ResourceVersion, broken.Status.Phase, broken.Status.Reason = "", corev1.PodFailed, "Evicted"
	require.NoError(t, c.Status().Update(t.Context(), broken))
	await.Until(t, func(collect *assert.CollectT) { assert.True(collect, isGone(t, c, &failed)) })
	settles(t, c, set, nodeCount, nodeCount)
}
