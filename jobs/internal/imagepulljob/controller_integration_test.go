package imagepulljob_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	nodeimage "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// The first test: no other one may have had NodeImage served to the same manager.
func TestAJobBeginsWhenNodeImageAppears(t *testing.T) {
	require.NoError(t, envtest.UninstallCRDs(env.Config, definition(t)))
	d, err := discovery.NewDiscoveryClientForConfig(env.Config)
	require.NoError(t, err)
	await.Until(t, func(collect *assert.CollectT) {
		served, err := d.ServerResourcesForGroupVersion(nodeimage.GroupVersion.String())
		require.NoError(collect, err)
		for _, r := range served.APIResources {
			assert.NotEqual(collect, "nodeimages", r.Name)
		}
	})
	c := givenControllerOf(t, env)
	job := givenJob(t, c, env.Namespace(t))
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
		assert.Equal(collect, plan.MessageNotInstalled, job.Status.Message)
		assert.Nil(collect, job.Status.CompletionTime)
	})

	givenNodeImages(t)
	givenNodes(t, c, 2)
	givenAgents(t, c, nodeimage.ImageSucceeded)
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
		completed(collect, job)
		assert.EqualValues(collect, 2, job.Status.Desired)
	})
}

func TestAJobPullsOnAllItsNodes(t *testing.T) {
	c := givenController(t)
	givenNodes(t, c, 5)
	givenAgents(t, c, nodeimage.ImageSucceeded)
	job := givenJob(t, c, env.Namespace(t), func(job *v1beta1.ImagePullJob) {
		job.Spec.Parallelism = new(intstr.FromInt(2))
		job.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(1))
	})
	ended := testenv.Passes(t, &env, job, func(job *v1beta1.ImagePullJob) bool { return job.Status.Message == "job has completed" })
	assert.EqualValues(t, 5, ended.Status.Succeeded)
	await.Until(t, func(collect *assert.CollectT) {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(job), job)
		assert.True(collect, apierrors.IsNotFound(err), "its time is over")
	})
}

func TestFailedNodesAreNamedWithTheirReason(t *testing.T) {
	c := givenController(t)
	names := givenNodes(t, c, 2)
	givenAgents(t, c, nodeimage.ImageFailed)
	job := givenJob(t, c, env.Namespace(t), func(job *v1beta1.ImagePullJob) {
		job.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{names[1], "absent", names[0]}}
	})
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
		assert.Equal(collect, "job has completed; 1 nodes in spec.selector.names have no NodeImage", job.Status.Message)
		assert.ElementsMatch(collect, names, job.Status.FailedNodes)
		require.Len(collect, job.Status.Failures, 2)
		assert.Equal(collect, "no such image", job.Status.Failures[0].Message)
	})
}

func TestNodesWithPodsArePulledOn(t *testing.T) {
	c := givenController(t)
	names := givenNodes(t, c, 2)
	givenAgents(t, c, nodeimage.ImageSucceeded)
	namespace := env.Namespace(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: names[1], Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	}
	require.NoError(t, c.Create(t.Context(), pod))
	job := givenJob(t, c, namespace, func(job *v1beta1.ImagePullJob) {
		job.Spec.Selector, job.Spec.PodSelector = nil, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	})
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
		completed(collect, job)
		assert.EqualValues(collect, 1, job.Status.Succeeded)
	})
	image := &nodeimage.NodeImage{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: names[0]}, image))
	assert.Empty(t, image.Spec.Images)
}

func TestSecretsAreCopiedAndRemoved(t *testing.T) {
	c := givenController(t)
	names := givenNodes(t, c, 1)
	namespace := env.Namespace(t)
	source := givenSecret(t, c, namespace)
	with := func(name string) func(*v1beta1.ImagePullJob) {
		return func(job *v1beta1.ImagePullJob) { job.Name, job.Spec.PullSecrets = name, []string{"registry"} }
	}
	first, second := givenJob(t, c, namespace, with("first")), givenJob(t, c, namespace, with("second"))
	await.Until(t, func(collect *assert.CollectT) {
		found := copiesOf(t.Context(), collect, c, namespace)
		require.Len(collect, found, 1)
		assert.Equal(collect, fmt.Sprintf("%s/first,%s/second", namespace, namespace), found[0].Annotations[v1beta1.SecretReferencesAnnotation])
		assert.Equal(collect, source.Data, found[0].Data)
	})
	require.NoError(t, c.Delete(t.Context(), first))
	await.Until(t, func(collect *assert.CollectT) {
		found := copiesOf(t.Context(), collect, c, namespace)
		require.Len(collect, found, 1)
		assert.Equal(collect, namespace+"/second", found[0].Annotations[v1beta1.SecretReferencesAnnotation])
		assert.True(collect, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(first), first)))
	})
	givenAgents(t, c, nodeimage.ImageSucceeded)
	eventually(t, c, second, completed)
	await.Until(t, func(collect *assert.CollectT) {
		assert.Empty(collect, copiesOf(t.Context(), collect, c, namespace), "no credential outlives the job")
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(second), second))
		assert.Empty(collect, second.Finalizers)
	})

	image := &nodeimage.NodeImage{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: names[0]}, image))
	require.Len(t, image.Spec.Images["nginx"].PullSecrets, 1, "a reference to the copy that is gone")
	third := givenJob(t, c, namespace, func(job *v1beta1.ImagePullJob) { job.Name, job.Spec.Image = "third", "nginx:1.26" })
	eventually(t, c, third, completed)
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: names[0]}, image))
	assert.Empty(t, image.Spec.Images["nginx"].PullSecrets, "it leaves with the next request")
}

// Whichever write is the last one of a manager, the next one ends the job, and no node pulls twice.
func TestAKilledManagerLeavesNothingUndone(t *testing.T) {
	givenNodeImages(t)
	for writes := int64(1); writes <= 4; writes++ {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			c := env.Client(t)
			names := givenNodes(t, c, 3)
			job := givenJob(t, c, env.Namespace(t), func(job *v1beta1.ImagePullJob) { job.Spec.Parallelism = new(intstr.FromInt(2)) })
			send, dead := faults.Kill(writes)
			t.Run("killed", func(t *testing.T) {
				givenControllerOf(t, faults.Over(env, send))
				for range min(writes, 3) {
					answerAll(t, c, names)
				}
				select {
				case <-dead:
				case <-t.Context().Done():
				}
			})
			givenControllerOf(t, env)
			givenAgents(t, c, nodeimage.ImageSucceeded)
			eventually(t, c, job, completed)
			for _, name := range names {
				image := &nodeimage.NodeImage{}
				require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name}, image))
				require.Len(t, image.Spec.Images["nginx"].Tags, 1)
				assert.Zero(t, image.Spec.Images["nginx"].Tags[0].Version, "one round of pulling")
			}
		})
	}
}

// Two managers at once, which happens when a leader is slow to see that it is none any more, have no node pull twice.
func TestTwoManagersPullOnce(t *testing.T) {
	givenNodeImages(t)
	c := env.Client(t)
	names := givenNodes(t, c, 4)
	givenControllerOf(t, env)
	givenControllerOf(t, env)
	givenAgents(t, c, nodeimage.ImageSucceeded)
	job := givenJob(t, c, env.Namespace(t), func(job *v1beta1.ImagePullJob) { job.Spec.Parallelism = new(intstr.FromInt(2)) })
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
		completed(collect, job)
		assert.EqualValues(collect, 4, job.Status.Succeeded)
	})
	for _, name := range names {
		assert.Zero(t, tagOf(t, c, name).Version, "one round of pulling")
	}
}

// answerAll has the agents look once.
func answerAll(t *testing.T, c client.Client, names []string) {
	t.Helper()
	await.Until(t, func(collect *assert.CollectT) {
		asked := 0
		for _, name := range names {
			image := &nodeimage.NodeImage{}
			require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Name: name}, image))
			if len(image.Spec.Images) > 0 {
				asked++
				answer(t.Context(), c, image, nodeimage.ImageSucceeded)
			}
		}
		assert.Positive(collect, asked, strings.Join(names, " "))
	})
}

// Whichever write is the last one of a manager, no copy of a secret and no finalizer outlives the job.
func TestAKilledManagerLeavesNoSecret(t *testing.T) {
	givenNodeImages(t)
	for writes := int64(1); writes <= 4; writes++ {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			c, namespace := env.Client(t), env.Namespace(t)
			givenNodes(t, c, 1)
			givenSecret(t, c, namespace)
			job := givenJob(t, c, namespace, func(job *v1beta1.ImagePullJob) { job.Spec.PullSecrets = []string{"registry"} })
			send, dead := faults.Kill(writes)
			t.Run("killed", func(t *testing.T) {
				givenControllerOf(t, faults.Over(env, send))
				select {
				case <-dead:
				case <-t.Context().Done():
				}
			})
			givenAgents(t, c, nodeimage.ImageSucceeded)
			givenControllerOf(t, env)
			eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
				completed(collect, job)
				assert.Empty(collect, job.Finalizers)
				assert.Empty(collect, copiesOf(t.Context(), collect, c, namespace))
			})
		})
	}
}

// A job that goes without giving up its secrets, because somebody has removed its finalizer, leaves no copy behind:
// neither while the manager runs nor while it is away.
func TestNoCopyOutlivesAJobThatIsGone(t *testing.T) {
	givenNodeImages(t)
	c, namespace := env.Client(t), env.Namespace(t)
	givenNodes(t, c, 1)
	source := givenSecret(t, c, namespace)
	leftOver := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: config, GenerateName: "registry-", Annotations: map[string]string{
			v1beta1.SecretSourceAnnotation: namespace + "/registry", v1beta1.SecretReferencesAnnotation: namespace + "/gone",
			v1beta1.SecretModeAnnotation: v1beta1.SecretModeBatch,
		}},
		Type: source.Type, Data: source.Data,
	}
	foreign := leftOver.DeepCopy()
	delete(foreign.Annotations, v1beta1.SecretModeAnnotation)
	require.NoError(t, c.Create(t.Context(), leftOver))
	require.NoError(t, c.Create(t.Context(), foreign))
	givenControllerOf(t, env)
	await.Until(t, func(collect *assert.CollectT) {
		assert.True(collect, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(leftOver), leftOver)))
	})
	require.NoError(t, c.Delete(t.Context(), foreign), "what is no copy stays")

	with := func(name string) func(*v1beta1.ImagePullJob) {
		return func(job *v1beta1.ImagePullJob) { job.Name, job.Spec.PullSecrets = name, []string{"registry"} }
	}
	first := givenJob(t, c, namespace, with("first"))
	givenJob(t, c, namespace, with("second"))
	usedBy := func(want string) {
		t.Helper()
		await.Until(t, func(collect *assert.CollectT) {
			found := copiesOf(t.Context(), collect, c, namespace)
			require.Len(collect, found, 1)
			assert.Equal(collect, want, found[0].Annotations[v1beta1.SecretReferencesAnnotation])
		})
	}
	usedBy(fmt.Sprintf("%s/first,%s/second", namespace, namespace))
	found := copiesOf(t.Context(), t, c, namespace)[0]
	found.Annotations[v1beta1.SecretReferencesAnnotation] += "," + namespace + "/third"
	require.NoError(t, c.Update(t.Context(), &found))
	usedBy(fmt.Sprintf("%s/first,%s/second", namespace, namespace))
	require.NoError(t, c.Delete(t.Context(), first))
	usedBy(namespace + "/second")
}

// A node that goes while it pulls is waited for by nobody.
func TestANodeThatGoesIsNotWaitedFor(t *testing.T) {
	c := givenController(t)
	names := slices.Sorted(slices.Values(givenNodes(t, c, 2)))
	job := givenJob(t, c, env.Namespace(t))
	asked := func(name string) bool {
		image := &nodeimage.NodeImage{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name}, image))
		return len(image.Spec.Images) > 0
	}
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
		assert.EqualValues(collect, 1, job.Status.Active)
	})
	assert.Equal(t, [2]bool{true, false}, [2]bool{asked(names[0]), asked(names[1])}, "one at a time")
	require.NoError(t, c.Delete(t.Context(), &nodeimage.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: names[0]}}))
	await.Until(t, func(collect *assert.CollectT) { assert.True(collect, asked(names[1])) })
	pulls(t, c, names[1], nodeimage.ImageSucceeded)
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
		completed(collect, job)
		assert.Equal(collect, [2]int32{1, 1}, [2]int32{job.Status.Desired, job.Status.Succeeded})
	})
}

// Where there are nodes, a job does not complete before one of them has a NodeImage.
func TestAJobWaitsForTheFirstNodeImage(t *testing.T) {
	c := givenController(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: env.Namespace(t)}}
	require.NoError(t, c.Create(t.Context(), node))
	t.Cleanup(func() { require.NoError(t, c.Delete(context.WithoutCancel(t.Context()), node)) })
	job := givenJob(t, c, env.Namespace(t))
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
		assert.Contains(collect, job.Status.Message, plan.MessageNoNodeImages)
		assert.Nil(collect, job.Status.CompletionTime)
	})
	givenNodes(t, c, 1)
	givenAgents(t, c, nodeimage.ImageSucceeded)
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.ImagePullJob) {
		completed(collect, job)
		assert.EqualValues(collect, 1, job.Status.Succeeded)
	})
}
