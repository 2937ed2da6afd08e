package cloneset_test

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
	"github.com/flotilla-project/flotilla/core/testing/simnodes"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

func TestImagesArePulledAheadOncePerRevision(t *testing.T) {
	env.ServePullJobs(t)
	set := newPullingSet(env.Namespace(t), 5)
	givenPuller(t, set.Namespace)
	c := env.Client(t)
	audit := env.Audit(t)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	assert.Empty(t, jobsOf(t, c, set), "a first rollout has nothing to pull ahead of")

	edit(t, c, set, both(image("app:2"), keep(4)))
	settles(t, c, set)
	eventually(t, func(collect *assert.CollectT) {
		labels := updateRevision(t, c, set).Labels
		assert.Equal(collect, "true", labels[contract.ImagePreDownloadCreatedLabel])
		assert.NotContains(collect, labels, contract.ImagePreDownloadIgnoredLabel)
	})
	jobs := jobsOf(t, c, set)
	require.Len(t, jobs, 1)
	assert.Equal(t, set.Status.UpdateRevision+"-main", jobs[0].GetName())
	assert.True(t, metav1.IsControlledBy(&jobs[0], set))
	spec := jobs[0].Object["spec"].(map[string]any)
	assert.Equal(t, "app:2", spec["image"])
	assert.Equal(t, int64(2), spec["parallelism"])
	assert.NotEmpty(t, events(t, c, set, "CreatedImagePullJob"))

	edit(t, c, set, keep(3))
	settles(t, c, set)
	edit(t, c, set, keep(0))
	settles(t, c, set)
	eventually(t, func(collect *assert.CollectT) { assert.Empty(collect, jobsOf(t, c, set)) })
	writes := audit.Writes(t, userAgent)
	assert.Equal(t, 1, writes["create imagepulljobs"])
	assert.Equal(t, 1, writes["delete imagepulljobs"])
	assert.Equal(t, 1, writes["patch controllerrevisions"])
}

func TestPullingAheadIsDecidedAnew(t *testing.T) {
	env.ServePullJobs(t)
	set := newPullingSet(env.Namespace(t), 3)
	givenPuller(t, set.Namespace)
	c := env.Client(t)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	edit(t, c, set, both(image("app:2"), keep(2)))
	eventually(t, func(collect *assert.CollectT) {
		assert.Equal(collect, "true", updateRevision(t, c, set).Labels[contract.ImagePreDownloadIgnoredLabel])
	})
	assert.Empty(t, jobsOf(t, c, set))
	edit(t, c, set, both(keep(4), func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(6)) }))
	eventually(t, func(collect *assert.CollectT) {
		labels := updateRevision(t, c, set).Labels
		assert.NotContains(collect, labels, contract.ImagePreDownloadIgnoredLabel)
		assert.Equal(collect, "true", labels[contract.ImagePreDownloadCreatedLabel])
	})
	assert.Len(t, jobsOf(t, c, set), 1)
}

// A job that cannot be created is told of and tried again; the rollout goes on.
func TestRefusedPullJobsHoldUpNothing(t *testing.T) {
	env.ServePullJobs(t)
	set := newPullingSet(env.Namespace(t), 4)
	givenPuller(t, set.Namespace)
	c := env.Client(t)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	edit(t, c, set, both(image("app:refused"), keep(3)))
	settles(t, c, set)
	eventually(t, func(collect *assert.CollectT) {
		told := events(t, c, set, "FailedCreateImagePullJob")
		if assert.NotEmpty(collect, told) {
			assert.Contains(collect, told[0].Note, "nobody may pull this image")
			assert.Equal(collect, "Warning", told[0].Type)
		}
	})
	assert.NotContains(t, updateRevision(t, c, set).Labels, contract.ImagePreDownloadCreatedLabel)
	edit(t, c, set, keep(0))
	settles(t, c, set)
	assert.Equal(t, set.Status.UpdateRevision, set.Status.CurrentRevision)
	assert.Empty(t, conditionOf(set, v1beta1.CloneSetFailedScale))
}

func TestWithoutImagePullJobsNothingIsPulledAhead(t *testing.T) {
	set := newPullingSet(env.Namespace(t), 4)
	givenPuller(t, set.Namespace)
	c := env.Client(t)
	audit := env.Audit(t)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	edit(t, c, set, both(image("app:2"), keep(2)))
	settles(t, c, set)
	eventually(t, func(collect *assert.CollectT) { assert.Len(collect, events(t, c, set, "PreDownloadUnavailable"), 1) })
	edit(t, c, set, keep(0))
	settles(t, c, set)
	assert.NotContains(t, updateRevision(t, c, set).Labels, contract.ImagePreDownloadIgnoredLabel)
	told := events(t, c, set, "PreDownloadUnavailable")
	require.Len(t, told, 1)
	assert.Nil(t, told[0].Series, "told once")
	for _, r := range audit.Requests(t, "") {
		assert.NotEqual(t, contract.ImagePullJobResource, r.Object.Resource, r.URI)
	}
}

// givenPuller runs a controller that pulls images ahead in the namespace alone, because other tests leave
// sets in the middle of rollouts behind.
func givenPuller(t *testing.T, namespace string) {
	t.Helper()
	givenNodes(t, simnodes.Options{Bind: true})
	startController(t, namespace, func(g *plan.FeatureGates) { g.PreDownload = true })
}

func newPullingSet(namespace string, replicas int32) *v1beta1.CloneSet {
	set := newSet(namespace, replicas, v1beta1.InPlaceIfPossible, 1)
	parallelism := intstr.FromInt32(2)
	set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{ImagePreDownloadParallelism: &parallelism}
	return set
}

// keep leaves n pods on the current revision.
func keep(n int) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) {
		partition := intstr.FromInt(n)
		set.Spec.UpdateStrategy.RollingUpdate.Partition = &partition
	}
}

func both(a, b func(*v1beta1.CloneSet)) func(*v1beta1.CloneSet) {
	return func(set *v1beta1.CloneSet) {
		a(set)
		b(set)
	}
}

func jobsOf(t *testing.T, c client.Client, set *v1beta1.CloneSet) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(contract.ImagePullJobGVK("v1beta1"))
	require.NoError(t, c.List(t.Context(), list, client.InNamespace(set.Namespace)))
	return list.Items
}

// updateRevision is the revision that the status names now.
func updateRevision(t *testing.T, c client.Client, set *v1beta1.CloneSet) *appsv1.ControllerRevision {
	t.Helper()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	r := &appsv1.ControllerRevision{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: set.Namespace, Name: set.Status.UpdateRevision}, r))
	return r
}

func events(t *testing.T, c client.Client, set *v1beta1.CloneSet, reason string) []eventsv1.Event {
	t.Helper()
	list := &eventsv1.EventList{}
	require.NoError(t, c.List(t.Context(), list, client.InNamespace(set.Namespace)))
	var found []eventsv1.Event
	for _, e := range list.Items {
		if e.Reason == reason {
			found = append(found, e)
		}
	}
	return found
}
