package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/api/workload"

	clonesets "github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1alpha1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// With the feature gate of CloneSets on, a new image is on the nodes of old pods before the first one is updated, and
// the jobs that pulled it are gone when the last one is.
func TestImagesArePulledAheadOfAnUpdate(t *testing.T) {
	t.Parallel()
	const before, after, replicas = "example.com/ahead/app:v1", "example.com/ahead/app:v2", 4
	publish(t, "v1", before)
	publish(t, "v2", after)
	world.TurnOn(t, "cloneset-manager", "PreDownloadImageForInPlaceUpdate")
	set := newSet(world.Namespace(t), before, replicas)
	require.NoError(t, world.Client.Create(t.Context(), set))
	settled := func(set *clonesets.CloneSet) error {
		s := set.Status
		return story.Want(s.ObservedGeneration == set.Generation && s.AvailableReplicas == replicas, "status is %+v", s)
	}
	story.Reaches(t, world, set, "available", settled)
	pods := world.Pods(t, set.Namespace)

	// No pod may be updated before the partition allows it.
	ahead := forecasts.Edit(t, world, set, func(set *clonesets.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromString("100%"))
		set.Spec.Template.Spec.Containers[0].Image = after
	})
	job := pulledAhead(t, set, before, after)
	ahead.ComesTrue(t)
	older := &v1alpha1.ImagePullJob{}
	require.NoError(t, world.Client.Get(t.Context(), client.ObjectKeyFromObject(job), older))
	assert.Equal(t, after, older.Spec.Image, "clients of the older version read it")

	rollout := forecasts.Edit(t, world, set, func(set *clonesets.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = nil })
	story.Reaches(t, world, set, "updated", func(set *clonesets.CloneSet) error {
		if set.Status.UpdatedReadyReplicas != replicas {
			return fmt.Errorf("status is %+v", set.Status)
		}
		return settled(set)
	})
	rollout.ComesTrue(t)
	assert.Equal(t, story.Identities(pods), story.Identities(world.Pods(t, set.Namespace)), "in place")
	story.Gone(t, world, job)
	story.Eventually(t, "the end of the entries of the job", func(context.Context) error {
		for _, node := range nodesOf(pods) {
			image := &daemon.NodeImage{}
			if err := world.Client.Get(t.Context(), client.ObjectKey{Name: node}, image); err != nil {
				return err
			}
			if _, there := image.Spec.Images["example.com/ahead/app"]; there {
				return fmt.Errorf("node %s is still asked for the image", node)
			}
		}
		return nil
	})
}

// newSet returns a CloneSet whose pods are updated in place, two at a time.
func newSet(namespace, image string, replicas int32) *clonesets.CloneSet {
	labels := map[string]string{"app": "web"}
	set := &clonesets.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	set.Spec.Replicas, set.Spec.Selector = &replicas, &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template = webTemplate(image)
	set.Spec.UpdateStrategy.RollingUpdate = &clonesets.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: clonesets.InPlaceIfPossible, MaxUnavailable: new(intstr.FromInt32(2)),
		InPlaceUpdateStrategy: &workload.InPlaceUpdateStrategy{ImagePreDownloadParallelism: new(intstr.FromInt32(3))},
	}
	return set
}

// pulledAhead waits until the job of the workload for a new image has completed, and returns it. All nodes of its pods
// have the image then, and no pod does.
func pulledAhead(t *testing.T, owner client.Object, before, after string) *v1beta1.ImagePullJob {
	t.Helper()
	job := pulled(t, owner.GetNamespace(), after)
	pods := world.Pods(t, owner.GetNamespace())
	on := slices.Compact(nodesOf(pods))
	assert.Equal(t, [3]int32{int32(len(on)), int32(len(on)), 0}, [3]int32{job.Status.Desired, job.Status.Succeeded, job.Status.Failed}, job.Status.Message)
	assert.True(t, metav1.IsControlledBy(job, owner))
	name, tag, _ := strings.Cut(after, ":")
	for _, node := range on {
		image := &daemon.NodeImage{}
		require.NoError(t, world.Client.Get(t.Context(), client.ObjectKey{Name: node}, image))
		assert.Equal(t, daemon.ImageSucceeded, phaseOf(image, name, tag), node)
	}
	assert.Equal(t, slices.Repeat([]string{before}, len(pods)), story.Images(pods), "the update has not begun")
	return job
}

// pulled waits until the one job of the namespace, which is for the image, has completed, and returns it.
func pulled(t *testing.T, namespace, image string) *v1beta1.ImagePullJob {
	t.Helper()
	var found *v1beta1.ImagePullJob
	story.Eventually(t, "the image on the nodes", func(ctx context.Context) error {
		list := &v1beta1.ImagePullJobList{}
		if err := world.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("there are %d jobs", len(list.Items))
		}
		found = &list.Items[0]
		return story.Want(found.Spec.Image == image && found.Status.CompletionTime != nil, "the job for %s is %+v", found.Spec.Image, found.Status)
	})
	return found
}

func phaseOf(image *daemon.NodeImage, name, tag string) daemon.ImagePullPhase {
	for _, told := range image.Status.ImageStatuses[name].Tags {
		if told.Tag == tag {
			return told.Phase
		}
	}
	return ""
}
