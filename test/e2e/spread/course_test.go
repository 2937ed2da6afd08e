package spread

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/story"
)

// atMostInA returns a check that no more pods than the limit are active in subset a. Those with a UID in leaving are about to be
// deleted: their places are free when the API server asks about the deletion, and it stores the deletion a moment later.
func atMostInA(t *testing.T, limit int, leaving *sync.Map) func(story.Pods) error {
	t.Helper()
	return func(pods story.Pods) error {
		n := 0
		for _, o := range pods {
			ended := o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed
			_, leaves := leaving.Load(o.UID)
			if subsetOf(t, o) == "a" && !ended && !leaves && o.DeletionTimestamp == nil {
				n++
			}
		}
		return story.Want(n <= limit, "%d pods are in subset a, at most %d may be", n, limit)
	}
}

// Pods are deleted faster than their successors start: the limit holds at each instant, and all places are taken again.
func TestSuccessorsOfDeletedPodsTakeTheirPlaces(t *testing.T) {
	forKinds(t, []kind{deployments, cloneSets}, func(t *testing.T, k kind) {
		t.Helper()
		namespace := world.Namespace(t)
		spread := k.givenSpread(t, namespace, twoThenTheRest(zones(t, namespace)))
		var leaving sync.Map
		end := world.Always(t, namespace, atMostInA(t, 2, &leaving))
		k.givenWorkload(t, namespace, 4)
		settled := map[string]int{"a in zone a, cost 200": 2, "b in zone b, cost 100": 2}
		settlesWith(t, spread, settled)
		for range 15 {
			pods := story.Active(world.Pods(t, namespace))
			if len(pods) > 0 {
				o := &pods[rand.IntN(len(pods))]
				leaving.Store(o.UID, true)
				require.NoError(t, client.IgnoreNotFound(world.Client.Delete(t.Context(), o)))
			}
		}
		settlesWith(t, spread, settled)
		end()
	})
}

// Pods of a Job that end at once free their places for the next ones: none is on nodes of another subset, and none without
// a subset.
func TestShortPodsOfAJobAreSpread(t *testing.T) {
	t.Parallel()
	namespace := world.Namespace(t)
	kind(jobs).givenSpread(t, namespace, twoThenTheRest(zones(t, namespace)))
	end := world.Always(t, namespace, atMostInA(t, 2, &sync.Map{}))
	template := newTemplate()
	template.Spec.Containers[0].Args = []string{"sleep", "100ms"}
	job, ok := kind(jobs).newWorkload(t, namespace, 5, template).(*batchv1.Job)
	require.True(t, ok)
	job.Spec.Completions = new(int32(25))
	require.NoError(t, world.Client.Create(t.Context(), job))
	story.Reaches(t, world, job, "complete", func(job *batchv1.Job) error {
		return story.Want(job.Status.Succeeded == 25, "status is %+v", job.Status)
	})
	end()
	places := map[string]int{}
	pods := world.Pods(t, namespace)
	for i := range pods {
		places[tell(t, &pods[i])]++
	}
	assert.Equal(t, 25, places["a in zone a"]+places["b in zone b"], "pods are %v", places)
	assert.Positive(t, places["a in zone a"], "places are taken again")
}
