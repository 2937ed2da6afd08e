package nodeimage_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

func TestNodeImagesFollowNodes(t *testing.T) {
	c := givenController(t)
	audit := env.Audit(t)
	givenNode(t, c, "young", 0, nil)
	givenNode(t, c, "virtual", time.Hour, map[string]string{v1beta1.NodeTypeLabel: v1beta1.VirtualKubelet})
	node := givenNode(t, c, "old", time.Hour, map[string]string{"zone": "a"})

	eventually(t, c, "old", func(collect *assert.CollectT, image *v1beta1.NodeImage) {
		assert.Equal(collect, map[string]string{"zone": "a"}, image.Labels)
		require.Len(collect, image.OwnerReferences, 1)
		assert.Equal(collect, node.UID, image.OwnerReferences[0].UID)
	})

	node.Labels = map[string]string{"zone": "b"}
	require.NoError(t, c.Update(t.Context(), node))
	eventually(t, c, "old", func(collect *assert.CollectT, image *v1beta1.NodeImage) {
		assert.Equal(collect, "b", image.Labels["zone"])
	})

	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue})
	require.NoError(t, c.Status().Update(t.Context(), node))
	eventually(t, c, "old", func(collect *assert.CollectT, image *v1beta1.NodeImage) {
		assert.Equal(collect, "true", image.Annotations[v1beta1.DiskPressureAnnotation])
	})

	require.NoError(t, c.Delete(t.Context(), node))
	await.Until(t, func(collect *assert.CollectT) {
		assert.True(collect, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: "old"}, &v1beta1.NodeImage{})))
	})
	for _, name := range []string{"young", "virtual"} {
		assert.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: name}, &v1beta1.NodeImage{})), name)
	}
	assert.Equal(t, map[string]int{"create nodeimages": 1, "patch nodeimages": 2, "delete nodeimages": 1}, audit.Writes(t, userAgent))
}

// A heartbeat changes nothing for a NodeImage.
func TestHeartbeatsCostNothing(t *testing.T) {
	c := givenController(t)
	node := givenNode(t, c, "quiet", time.Hour, nil)
	eventually(t, c, "quiet", func(*assert.CollectT, *v1beta1.NodeImage) {})
	audit := env.Audit(t)

	for range 3 {
		node.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
		require.NoError(t, c.Status().Update(t.Context(), node))
	}
	givenNode(t, c, "next", time.Hour, nil)
	eventually(t, c, "next", func(*assert.CollectT, *v1beta1.NodeImage) {})

	assert.Equal(t, map[string]int{"create nodeimages": 1}, audit.Writes(t, userAgent), "those of the next node")
}

func givenJob(t *testing.T, c client.Client, namespace, name string) (client.Object, corev1.ObjectReference) {
	t.Helper()
	job, err := contract.NewImagePullJob("v1beta1", metav1.ObjectMeta{Namespace: namespace, Name: name}, contract.ImagePullJobSpec{Image: "nginx"})
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), job))
	return job, corev1.ObjectReference{
		APIVersion: "apps.kruise.io/v1beta1", Kind: contract.ImagePullJobKind, Namespace: namespace, Name: name, UID: job.GetUID(),
	}
}

func TestATagGoesWithItsLastJob(t *testing.T) {
	env.ServePullJobs(t)
	c := givenController(t)
	namespace := env.Namespace(t)
	first, one := givenJob(t, c, namespace, "first")
	second, two := givenJob(t, c, namespace, "second")
	gone := one
	gone.UID = "former"
	givenImage(t, c, "jobs", map[string]v1beta1.ImageSpec{
		"nginx": {Tags: []v1beta1.ImageTagSpec{wanted("1", 0, one, two), wanted("2", 0, one), wanted("3", 0, gone)}},
		"redis": {Tags: []v1beta1.ImageTagSpec{wanted("1", 0, gone)}},
	})

	eventually(t, c, "jobs", func(collect *assert.CollectT, image *v1beta1.NodeImage) {
		assert.Len(collect, image.Spec.Images["nginx"].Tags, 2)
		assert.NotContains(collect, image.Spec.Images, "redis")
	})
	require.NoError(t, c.Delete(t.Context(), first))
	eventually(t, c, "jobs", func(collect *assert.CollectT, image *v1beta1.NodeImage) {
		require.Len(collect, image.Spec.Images["nginx"].Tags, 1)
		assert.Equal(collect, []corev1.ObjectReference{two}, image.Spec.Images["nginx"].Tags[0].OwnerReferences)
	})
	require.NoError(t, c.Delete(t.Context(), second))
	eventually(t, c, "jobs", func(collect *assert.CollectT, image *v1beta1.NodeImage) {
		assert.Empty(collect, image.Spec.Images)
	})
}

// A cache that lags behind proves nothing: whoever writes a tag has made its job before.
func TestATagOfAJobThatTheCacheDoesNotShowYetStays(t *testing.T) {
	env.ServePullJobs(t)
	shown := make(chan struct{})
	show := sync.OnceFunc(func() { close(shown) })
	t.Cleanup(show)
	c := givenControllerOf(t, env, func(object any) (any, error) {
		if o, ok := object.(*metav1.PartialObjectMetadata); ok && o.Name == "late" {
			<-shown
		}
		return fastclient.Trim(object)
	})
	namespace := env.Namespace(t)
	_, known := givenJob(t, c, namespace, "known")
	gone := known
	gone.UID = "former"
	givenImage(t, c, "begun", map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{wanted("1", 0, known), wanted("2", 0, gone)}}})
	eventually(t, c, "begun", func(collect *assert.CollectT, image *v1beta1.NodeImage) {
		assert.Len(collect, image.Spec.Images["nginx"].Tags, 1, "jobs are known from here on")
	})

	late, owner := givenJob(t, c, namespace, "late")
	gone = owner
	gone.UID = "former"
	givenImage(t, c, "late", map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{wanted("1", 0, owner), wanted("2", 0, gone)}}})
	eventually(t, c, "late", func(collect *assert.CollectT, image *v1beta1.NodeImage) {
		assert.Equal(collect, []corev1.ObjectReference{owner}, ownersOf(image), "the server knows which of them is gone")
	})
	show()
	require.NoError(t, c.Delete(t.Context(), late))
	eventually(t, c, "late", func(collect *assert.CollectT, image *v1beta1.NodeImage) {
		assert.Empty(collect, image.Spec.Images)
	})
}

func ownersOf(image *v1beta1.NodeImage) []corev1.ObjectReference {
	var all []corev1.ObjectReference
	for _, tag := range image.Spec.Images["nginx"].Tags {
		all = append(all, tag.OwnerReferences...)
	}
	return all
}

// However many nodes a job had, its end is asked for once.
func TestTheEndOfAJobIsAskedForOnce(t *testing.T) {
	env.ServePullJobs(t)
	c := givenController(t)
	namespace := env.Namespace(t)
	job, owner := givenJob(t, c, namespace, "wide")
	for i := range 10 {
		givenImage(t, c, fmt.Sprint("wide-", i), map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{wanted("1", 0, owner)}}})
	}
	audit := env.Audit(t)
	require.NoError(t, c.Delete(t.Context(), job))
	for i := range 10 {
		eventually(t, c, fmt.Sprint("wide-", i), func(collect *assert.CollectT, image *v1beta1.NodeImage) {
			assert.Empty(collect, image.Spec.Images)
		})
	}
	asked := 0
	for _, request := range audit.Requests(t, "") {
		if request.Verb == "list" && strings.Contains(request.URI, "fieldSelector=metadata.name%3Dwide") {
			asked++
		}
	}
	assert.Positive(t, asked)
	assert.LessOrEqual(t, asked, 3, "once, and by no more than all workers at the same time")
}

func TestSilentAgentsAreReported(t *testing.T) {
	env.ServePullJobs(t)
	c := givenController(t)
	namespace := env.Namespace(t)
	_, owner := givenJob(t, c, namespace, "warm")
	image := givenImage(t, c, "silent", map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{wanted("1", 11*time.Minute, owner)}}})

	eventually(t, c, image.Name, func(collect *assert.CollectT, image *v1beta1.NodeImage) {
		assert.EqualValues(collect, 1, image.Status.Desired)
		assert.EqualValues(collect, 1, image.Status.Failed)
		require.Len(collect, image.Status.ImageStatuses["nginx"].Tags, 1)
		assert.Equal(collect, "node has not responded for a long time", image.Status.ImageStatuses["nginx"].Tags[0].Message)
	})
	await.Until(t, func(collect *assert.CollectT) {
		var all eventsv1.EventList
		require.NoError(collect, c.List(t.Context(), &all))
		told := map[types.UID]string{}
		for _, event := range all.Items {
			told[event.Regarding.UID] = event.Type + " " + event.Reason + ": " + event.Note
		}
		const want = "Warning PullImageFailed: Failed to pull image nginx:1 on node silent for node has not responded for a long time"
		assert.Equal(collect, want, told[image.UID])
		assert.Equal(collect, want, told[owner.UID])
	})
}

func TestTheAgentHasTimeToTidyUp(t *testing.T) {
	c := givenController(t)
	image := givenImage(t, c, "leftover", map[string]v1beta1.ImageSpec{"nginx": {Tags: []v1beta1.ImageTagSpec{wanted("1", 0)}}})
	image.Status = v1beta1.NodeImageStatus{Desired: 2, Succeeded: 1, Pulling: 1, ImageStatuses: map[string]v1beta1.ImageStatus{
		"nginx": {Tags: []v1beta1.ImageTagStatus{{Tag: "1", Phase: v1beta1.ImagePulling}}},
		"redis": {Tags: []v1beta1.ImageTagStatus{{Tag: "1", Phase: v1beta1.ImageSucceeded}}},
	}}
	require.NoError(t, c.Status().Update(t.Context(), image))
	written := time.Now()

	eventually(t, c, image.Name, func(collect *assert.CollectT, image *v1beta1.NodeImage) {
		assert.Equal(collect, v1beta1.NodeImageStatus{
			Desired: 1, Pulling: 1, ImageStatuses: map[string]v1beta1.ImageStatus{
				"nginx": {Tags: []v1beta1.ImageTagStatus{{Tag: "1", Phase: v1beta1.ImagePulling}}},
			},
		}, image.Status)
	})
	assert.Greater(t, time.Since(written), 4*time.Second)
}

func TestReferencesToSecretsThatAreGoneAreDropped(t *testing.T) {
	c := givenController(t)
	namespace := env.Namespace(t)
	require.NoError(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "there"}}))
	there := v1beta1.SecretReference{Namespace: namespace, Name: "there"}
	gone := v1beta1.SecretReference{Namespace: namespace, Name: "gone"}
	batch := v1beta1.SecretReference{Namespace: namespace, Name: "gone", Mode: v1beta1.SecretBatch}
	givenImage(t, c, "secrets", map[string]v1beta1.ImageSpec{"nginx": {
		Tags: []v1beta1.ImageTagSpec{wanted("1", 0)}, PullSecrets: []v1beta1.SecretReference{there, gone, batch},
	}})

	eventually(t, c, "secrets", func(collect *assert.CollectT, image *v1beta1.NodeImage) {
		assert.Equal(collect, []v1beta1.SecretReference{there, batch}, image.Spec.Images["nginx"].PullSecrets)
	})
}
