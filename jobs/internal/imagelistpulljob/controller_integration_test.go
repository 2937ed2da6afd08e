package imagelistpulljob_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// A list is as far as its images are, and goes with them when its time is over.
func TestEachImageIsPulled(t *testing.T) {
	env.Need(t)
	namespace := env.Namespace(t)
	c := givenController(t, env, namespace)
	list := givenList(t, c, namespace, func(list *v1beta1.ImageListPullJob) {
		list.Spec.Parallelism = new(intstr.FromInt(7))
		list.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(600))
	})
	made := children(t, c, list, "nginx", "redis")
	for i := range made {
		assert.Equal(t, list.Spec.Parallelism, made[i].Spec.Parallelism)
		assert.Nil(t, made[i].Spec.CompletionPolicy.TTLSecondsAfterFinished, "it goes with the list")
	}
	report(t, c, &made[0], 0, 2, 0)
	report(t, c, &made[1], 1, 0, 1)
	eventually(t, c, list, func(collect *assert.CollectT, list *v1beta1.ImageListPullJob) {
		assert.Equal(collect, made[0].Labels[contract.RevisionLabel], list.Labels[contract.RevisionLabel])
		assert.Equal(collect, [4]int32{2, 1, 1, 1}, [4]int32{list.Status.Desired, list.Status.Active, list.Status.Completed, list.Status.Succeeded})
		assert.Nil(collect, list.Status.CompletionTime)
	})
	report(t, c, &made[1], 0, 1, 1)
	eventually(t, c, list, func(collect *assert.CollectT, list *v1beta1.ImageListPullJob) {
		assert.Equal(collect, [4]int32{2, 0, 2, 1}, [4]int32{list.Status.Desired, list.Status.Active, list.Status.Completed, list.Status.Succeeded})
		assert.NotNil(collect, list.Status.CompletionTime)
		require.Len(collect, list.Status.FailedImageStatuses, 1)
		assert.Equal(collect, made[1].Name, list.Status.FailedImageStatuses[0].ImagePullJob)
		assert.Equal(collect, "redis", list.Status.FailedImageStatuses[0].Name)
	})
	testenv.Edit(t, c, list, func(list *v1beta1.ImageListPullJob) {
		list.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(0))
	})
	await.Until(t, func(collect *assert.CollectT) {
		assert.True(collect, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(list), list)))
	})
}

func TestEditsReplaceJobs(t *testing.T) {
	env.Need(t)
	namespace := env.Namespace(t)
	c := givenController(t, env, namespace)
	list := givenList(t, c, namespace)
	first := children(t, c, list, "nginx", "redis")
	testenv.Edit(t, c, list, func(list *v1beta1.ImageListPullJob) { list.Spec.Images = []string{"redis", "busybox"} })
	second := children(t, c, list, "busybox", "redis")
	assert.Equal(t, first[1].UID, second[1].UID, "nothing else changes for it")
	testenv.Edit(t, c, list, func(list *v1beta1.ImageListPullJob) {
		list.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(5))}
	})
	await.Until(t, func(collect *assert.CollectT) {
		now := listed(t.Context(), collect, c, list)
		assert.Equal(collect, []string{"busybox", "redis"}, imagesOf(now))
		for _, child := range now {
			assert.Equal(collect, list.Spec.PullPolicy, child.Spec.PullPolicy)
		}
	})
	require.NoError(t, c.Delete(t.Context(), &children(t, c, list, "busybox", "redis")[0]))
	children(t, c, list, "busybox", "redis")
}

// Whichever write is the last one of a manager, the next one goes on, and each image has one job.
func TestAKilledManagerLeavesNothingUndone(t *testing.T) {
	env.Need(t)
	for writes := int64(1); writes <= 4; writes++ {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			c, namespace := env.Client(t), env.Namespace(t)
			list := givenList(t, c, namespace)
			send, dead := faults.Kill(writes)
			t.Run("killed", func(t *testing.T) {
				givenController(t, faults.Over(env, send), namespace)
				select {
				case <-dead:
				case <-t.Context().Done():
				}
			})
			givenController(t, env, namespace)
			assertEachOnce(t, c, list)
		})
	}
}

// Two managers at once, which happens when a leader is slow to see that it is none any more, make no job twice.
func TestTwoManagersMakeOneJobForEachImage(t *testing.T) {
	env.Need(t)
	c, namespace := env.Client(t), env.Namespace(t)
	givenController(t, env, namespace)
	givenController(t, env, namespace)
	audit := env.Audit(t)
	list := givenList(t, c, namespace)
	assertEachOnce(t, c, list)
	assert.NotContains(t, audit.Kinds(t, userAgent, namespace), "delete imagepulljobs")
}

// assertEachOnce brings the jobs of a list to their end.
func assertEachOnce(t *testing.T, c client.Client, list *v1beta1.ImageListPullJob) {
	t.Helper()
	made := children(t, c, list, "nginx", "redis")
	for i := range made {
		report(t, c, &made[i], 0, 2, 0)
	}
	eventually(t, c, list, func(collect *assert.CollectT, list *v1beta1.ImageListPullJob) {
		assert.NotNil(collect, list.Status.CompletionTime)
		assert.Equal(collect, made[0].Labels[contract.RevisionLabel], list.Labels[contract.RevisionLabel])
	})
	for i, child := range children(t, c, list, "nginx", "redis") {
		assert.Equal(t, made[i].UID, child.UID)
	}
}

// Jobs that OpenKruise has made go on under the label that they would have here.
func TestWhatOpenKruiseHasMadeIsTakenOver(t *testing.T) {
	env.Need(t)
	c, namespace := env.Client(t), env.Namespace(t)
	list := givenList(t, c, namespace, func(list *v1beta1.ImageListPullJob) {
		list.Labels = map[string]string{contract.RevisionLabel: "5d8f7c9b5d"}
		list.Spec.Images = []string{"nginx"}
		list.Spec.CompletionPolicy = v1beta1.CompletionPolicy{Type: v1beta1.CompletionAlways, TTLSecondsAfterFinished: new(int32(60))}
		list.Spec.PullPolicy = &v1beta1.PullPolicy{TimeoutSeconds: new(int32(600)), BackoffLimit: new(int32(3))}
	})
	child := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, GenerateName: "list-", Labels: list.Labels, Finalizers: []string{"apps.kruise.io/deletion-protection"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps.kruise.io/v1alpha1", Kind: "ImageListPullJob", Name: list.Name, UID: list.UID, Controller: new(true), BlockOwnerDeletion: new(true),
		}},
	}}
	child.Spec = v1beta1.ImagePullJobSpec{Image: "nginx", ImagePullJobTemplate: list.Spec.ImagePullJobTemplate}
	child.Spec.ImagePullPolicy = v1beta1.PullIfNotPresent
	require.NoError(t, c.Create(t.Context(), child))
	report(t, c, child, 1, 1, 0)
	givenController(t, env, namespace)
	eventually(t, c, list, func(collect *assert.CollectT, list *v1beta1.ImageListPullJob) {
		assert.Equal(collect, [2]int32{1, 1}, [2]int32{list.Status.Desired, list.Status.Active})
		now := listed(t.Context(), collect, c, list)
		require.Len(collect, now, 1)
		assert.Equal(collect, child.UID, now[0].UID)
		assert.NotEqual(collect, child.Labels, now[0].Labels)
		assert.Equal(collect, list.Labels, now[0].Labels)
		assert.Nil(collect, now[0].Spec.CompletionPolicy.TTLSecondsAfterFinished, "it goes with the list")
	})
}
