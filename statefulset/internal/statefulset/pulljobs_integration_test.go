package statefulset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// With the feature gate and the kind, one job for each new image and revision pulls it ahead.
func TestImagesArePulledAheadOncePerRevision(t *testing.T) {
	env.ServePullJobs(t)
	set := newPullingSet(env.Namespace(t))
	givenNodes(t, simnodes.Options{Bind: true})
	startController(t, env, set.Namespace, preDownload)
	c := env.Client(t)
	audit := env.Audit(t)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	assert.Empty(t, jobs(t, c, set), "a first rollout has nothing to pull ahead of")
	testenv.Edit(t, c, set, both(image("app:2"), keep(4)))
	settles(t, c, set)
	await.Until(t, func(collect *assert.CollectT) {
		revision := &appsv1.ControllerRevision{}
		require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Namespace: set.Namespace, Name: set.Status.UpdateRevision}, revision))
		assert.Equal(collect, "true", revision.Labels[contract.ImagePreDownloadCreatedLabel])
	})
	made := jobs(t, c, set)
	require.Len(t, made, 1)
	assert.Equal(t, set.Status.UpdateRevision+"-main", made[0].GetName())
	assert.True(t, metav1.IsControlledBy(&made[0], set))

	testenv.Edit(t, c, set, keep(0))
	settles(t, c, set)
	await.Until(t, func(collect *assert.CollectT) { assert.Empty(collect, jobs(t, c, set)) })
	writes := audit.Writes(t, userAgent)
	assert.Equal(t, 1, writes["create imagepulljobs"])
	assert.Equal(t, 1, writes["delete imagepulljobs"])
}

// With the feature gate and without the kind the rollout goes on, and the user is told once.
func TestWithoutImagePullJobsNothingIsPulledAhead(t *testing.T) {
	set := newPullingSet(env.Namespace(t))
	givenNodes(t, simnodes.Options{Bind: true})
	startController(t, env, set.Namespace, preDownload)
	c := env.Client(t)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	testenv.Edit(t, c, set, both(image("app:2"), keep(2)))
	settles(t, c, set)
	told := func() []eventsv1.Event {
		list := &eventsv1.EventList{}
		require.NoError(t, c.List(t.Context(), list, client.InNamespace(set.Namespace)))
		var found []eventsv1.Event
		for _, e := range list.Items {
			if e.Reason == "PreDownloadUnavailable" {
				found = append(found, e)
			}
		}
		return found
	}
	await.Until(t, func(collect *assert.CollectT) { assert.Len(collect, told(), 1) })
	testenv.Edit(t, c, set, keep(0))
	settles(t, c, set)
	require.Len(t, told(), 1)
	assert.Nil(t, told()[0].Series, "told once")
}

// Without the feature gate the kind is not even looked for.
func TestWithoutTheGateNobodyLooksForImagePullJobs(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newPullingSet(env.Namespace(t))
	audit := env.Audit(t)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	testenv.Edit(t, c, set, image("app:2"))
	settles(t, c, set)
	for _, r := range audit.Requests(t, operator) {
		assert.NotEqual(t, contract.ImagePullJobResource, r.Object.Resource, r.URI)
	}
}

func preDownload(g *plan.FeatureGates) { g.PreDownload = true }

func newPullingSet(namespace string) *v1beta1.StatefulSet {
	set := newSet(namespace, 5, v1beta1.InPlaceIfPossible, 1)
	set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{ImagePreDownloadParallelism: new(intstr.FromInt32(2))}
	return set
}

func jobs(t *testing.T, c client.Client, set *v1beta1.StatefulSet) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(contract.ImagePullJobGVK("v1beta1"))
	require.NoError(t, c.List(t.Context(), list, client.InNamespace(set.Namespace)))
	return list.Items
}
