package jobs

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// newList returns a list of images for all nodes.
func newList(t *testing.T, images ...string) *v1beta1.ImageListPullJob {
	t.Helper()
	list := &v1beta1.ImageListPullJob{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace(t), Name: "list"}}
	list.Spec.Images = images
	return list
}

// Afterwards the runtime of every node has the images: pods run though their images must not be pulled.
func TestAListIsPulledEverywhere(t *testing.T) {
	t.Parallel()
	images := []string{"example.com/list/one:v1", "example.com/list/two:v1"}
	for _, image := range images {
		publish(t, "v3", image)
	}
	list := newList(t, images...)
	require.NoError(t, world.Client.Create(t.Context(), list))
	story.Reaches(t, world, list, "completed", func(list *v1beta1.ImageListPullJob) error {
		return story.Want(list.Status.CompletionTime != nil, "status is %+v", list.Status)
	})
	assert.EqualValues(t, 2, list.Status.Succeeded)
	for _, node := range world.Cluster.Nodes() {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: list.Namespace, Name: "on-" + node.Name()}}
		pod.Spec.NodeName = node.Name()
		for i, image := range images {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
				Name: []string{"one", "two"}[i], Image: image, ImagePullPolicy: corev1.PullNever, Args: []string{"-address", []string{":8080", ":8081"}[i]},
			})
		}
		require.NoError(t, world.Client.Create(t.Context(), pod))
		story.Reaches(t, world, pod, "running", func(pod *corev1.Pod) error {
			return story.Want(story.IsReady(pod), "containers are %+v", pod.Status.ContainerStatuses)
		})
	}
}

// A list that is deleted while nodes cannot pull leaves nothing on them.
func TestADeletedListTakesItsPullsWithIt(t *testing.T) {
	t.Parallel()
	const image = "example.com/absent/image"
	list := newList(t, image+":v1")
	list.Spec.PullPolicy = &v1beta1.PullPolicy{BackoffLimit: new(int32(100))}
	require.NoError(t, world.Client.Create(t.Context(), list))
	wanted := func() (nodes int) {
		images := &daemon.NodeImageList{}
		require.NoError(t, world.Client.List(t.Context(), images))
		for i := range images.Items {
			if _, ok := images.Items[i].Spec.Images[image]; ok {
				nodes++
			}
		}
		return nodes
	}
	story.Eventually(t, "a pull", func(context.Context) error { return story.Want(wanted() > 0, "nobody pulls") })
	require.NoError(t, world.Client.Delete(t.Context(), list))
	story.Eventually(t, "the end of the pulls", func(context.Context) error { return story.Want(wanted() == 0, "%d nodes pull", wanted()) })
}
