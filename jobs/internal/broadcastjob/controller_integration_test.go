package broadcastjob_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/broadcastjob/plan"
)

func TestAPodRunsOnEveryNode(t *testing.T) {
	c := givenController(t, env)
	names := givenNodes(t, "", 5)
	job := givenJob(t, c, succeeds, func(job *v1beta1.BroadcastJob) {
		job.Spec.Parallelism = new(intstr.FromString("40%"))
		job.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(600))
	})
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		phase(v1beta1.PhaseCompleted)(collect, job)
		assert.Equal(collect, [4]int32{5, 0, 5, 0}, [4]int32{job.Status.Desired, job.Status.Active, job.Status.Succeeded, job.Status.Failed})
		require.Len(collect, job.Status.Conditions, 1)
		assert.Equal(collect, v1beta1.JobComplete, job.Status.Conditions[0].Type)
	})
	pods := podsOf(t.Context(), t, c, job)
	for _, name := range names {
		require.Len(t, pods[name], 1)
		assert.Equal(t, corev1.PullAlways, pods[name][0].Spec.Containers[0].ImagePullPolicy)
	}
	edit(t, c, job, func(job *v1beta1.BroadcastJob) { job.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(0)) })
	await.Until(t, func(collect *assert.CollectT) {
		assert.True(collect, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(job), job)), "its time is over")
	})
}

// Nodes that are down, cordoned or not there yet when a job begins get their pod when they can run it.
func TestNodesJoinLater(t *testing.T) {
	c := givenController(t, env)
	names := givenNodes(t, "", 3)
	down := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: names[0]}}
	edit(t, c, down, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}}
	})
	cordoned := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: names[1]}}
	edit(t, c, cordoned, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	job := givenJob(t, c, succeeds, func(job *v1beta1.BroadcastJob) { job.Spec.CompletionPolicy.Type = v1beta1.CompletionNever })
	ran := func(n int32) {
		t.Helper()
		eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
			assert.Equal(collect, [2]int32{n, n}, [2]int32{job.Status.Desired, job.Status.Succeeded})
			assert.Equal(collect, plan.MessageServing, job.Status.Message)
		})
	}
	ran(1)
	edit(t, c, down, func(n *corev1.Node) { n.Spec.Taints = nil })
	ran(2)
	edit(t, c, cordoned, func(n *corev1.Node) { n.Spec.Unschedulable = false })
	ran(3)
	givenNodes(t, "-added", 1)
	ran(4)
}

// What happens to pods and nodes makes no job run twice on a node, and none wait for what is gone.
func TestPodsAndNodesGo(t *testing.T) {
	c := givenController(t, env)
	first := givenNodes(t, "", 1)[0]
	job := givenJob(t, c, succeeds, func(job *v1beta1.BroadcastJob) { job.Spec.CompletionPolicy.Type = v1beta1.CompletionNever })
	counts := func(desired, active, succeeded int32) {
		t.Helper()
		eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
			assert.Equal(collect, [3]int32{desired, active, succeeded}, [3]int32{job.Status.Desired, job.Status.Active, job.Status.Succeeded})
		})
	}
	counts(1, 0, 1)
	edit(t, c, job, func(job *v1beta1.BroadcastJob) { job.Spec.Template.Spec.Containers[0].Image = "runs" })
	more := givenNodes(t, "-more", 2)
	counts(3, 2, 1)
	ran, runs := podOn(t, c, job, first), podOn(t, c, job, more[1])
	require.NoError(t, c.Delete(t.Context(), ran))
	require.NoError(t, c.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: more[0]}}))
	counts(2, 1, 1)
	edit(t, c, job, func(job *v1beta1.BroadcastJob) { job.Spec.Template.Spec.Containers[0].Image = succeeds })
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		assert.Equal(collect, job.Generation, job.Status.ObservedGeneration, "the next pod has the new image")
	})
	require.NoError(t, c.Delete(t.Context(), runs))
	counts(2, 0, 2)
	edit(t, c, job, func(job *v1beta1.BroadcastJob) { job.Spec.CompletionPolicy.Type = v1beta1.CompletionAlways })
	eventually(t, c, job, phase(v1beta1.PhaseCompleted))
	assert.Empty(t, podsOf(t.Context(), t, c, job)[first], "it ran once")
}

// A node whose kubelet never runs the pod holds the job up as long as it is there. Its pod, which nobody ends, does not.
func TestANodeThatRunsNothingHoldsTheJobUpUntilItGoes(t *testing.T) {
	c := givenController(t, env)
	givenNodes(t, "", 2)
	mute := givenMuteNode(t, c)
	job := givenJob(t, c, succeeds, toleratesMute)
	counts := func(want v1beta1.BroadcastJobPhase, desired, active, succeeded int32) {
		t.Helper()
		eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
			phase(want)(collect, job)
			assert.Equal(collect, [4]int32{desired, active, succeeded, 0}, [4]int32{job.Status.Desired, job.Status.Active, job.Status.Succeeded, job.Status.Failed})
		})
	}
	counts(v1beta1.PhaseRunning, 3, 1, 2)
	pending := podsOf(t.Context(), t, c, job)[""]
	require.Len(t, pending, 1)
	bind(t, c, job, &pending[0], mute.Name)
	require.NoError(t, c.Delete(t.Context(), mute))
	counts(v1beta1.PhaseCompleted, 2, 0, 2)
}

func TestAFailedPodFailsTheJob(t *testing.T) {
	c := givenController(t, env)
	names := givenNodes(t, "", 2)
	other := givenNodes(t, "-other", 1)
	job := givenJob(t, c, "runs", func(job *v1beta1.BroadcastJob) { job.Spec.Parallelism = new(intstr.FromInt(2)) })
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		assert.EqualValues(collect, 2, job.Status.Active)
	})
	for _, name := range names { // a pod counts before it is on its node
		podOn(t, c, job, name)
	}
	require.Empty(t, podsOf(t.Context(), t, c, job)[other[0]])
	edit(t, c, job, func(job *v1beta1.BroadcastJob) {
		job.Spec.Parallelism, job.Spec.Template.Spec.Containers[0].Image = nil, fails
	})
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		phase(v1beta1.PhaseFailed)(collect, job)
		assert.Equal(collect, [4]int32{3, 0, 0, 3}, [4]int32{job.Status.Desired, job.Status.Active, job.Status.Succeeded, job.Status.Failed})
		require.Len(collect, job.Status.Failures, 3)
		assert.Equal(collect, other[0], job.Status.Failures[0].Node)
		assert.Equal(collect, new(int32(3)), job.Status.Failures[0].ExitCode)
		assert.Contains(collect, job.Status.Message, "on node "+other[0]+" (exit code 3) failed")
	})
	await.Until(t, func(collect *assert.CollectT) {
		left := podsOf(t.Context(), collect, c, job)
		assert.Len(collect, left, 1)
		assert.Len(collect, left[other[0]], 1, "the failed pod stays, with its logs")
	})
}

// A failure that a rule ignores is tried again on its node, and one that a rule is strict about ends the job at once.
func TestRulesOfPodFailuresAreFollowed(t *testing.T) {
	c := givenController(t, env)
	node := givenNodes(t, "", 1)[0]
	rule := func(do batchv1.PodFailurePolicyAction) func(*v1beta1.BroadcastJob) {
		return func(job *v1beta1.BroadcastJob) {
			job.Spec.FailurePolicy.Type = v1beta1.FailContinue
			job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action: do, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{3}},
			}}}
		}
	}
	patient, strict := givenJob(t, c, fails, rule(batchv1.PodFailurePolicyActionIgnore)), givenJob(t, c, fails, rule(batchv1.PodFailurePolicyActionFailJob))
	eventually(t, c, strict, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		phase(v1beta1.PhaseFailed)(collect, job)
		assert.Contains(collect, job.Status.Message, "podFailurePolicy rule 0")
	})
	eventually(t, c, patient, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		assert.Contains(collect, job.Status.Message, "ignores the failure")
		assert.Zero(collect, job.Status.Failed)
	})
	first := podOn(t, c, patient, node)
	edit(t, c, patient, func(job *v1beta1.BroadcastJob) { job.Spec.Template.Spec.Containers[0].Image = succeeds })
	eventually(t, c, patient, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		phase(v1beta1.PhaseCompleted)(collect, job)
		assert.EqualValues(collect, 1, job.Status.Succeeded)
	})
	assert.NotEqual(t, first.UID, podOn(t, c, patient, node).UID)
}

func TestAFailedPodPausesTheJob(t *testing.T) {
	c := givenController(t, env)
	givenNodes(t, "", 2)
	job := givenJob(t, c, fails, func(job *v1beta1.BroadcastJob) {
		job.Spec.FailurePolicy.Type, job.Spec.Parallelism = v1beta1.FailPause, new(intstr.FromInt(1))
	})
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		phase(v1beta1.PhasePaused)(collect, job)
		assert.True(collect, job.Spec.Paused)
		assert.EqualValues(collect, 1, job.Status.Failed)
	})
	edit(t, c, job, func(job *v1beta1.BroadcastJob) {
		job.Spec.Paused, job.Spec.Template.Spec.Containers[0].Image = false, succeeds
	})
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		phase(v1beta1.PhaseCompleted)(collect, job)
		assert.Equal(collect, [2]int32{1, 1}, [2]int32{job.Status.Succeeded, job.Status.Failed})
	})
}

// The node is told to end a pod that restarts too often; the job does not wait for it.
func TestRestartsAreLimited(t *testing.T) {
	c := givenController(t, env)
	names := givenNodes(t, "", 1)
	job := givenJob(t, c, fails, func(job *v1beta1.BroadcastJob) {
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		job.Spec.FailurePolicy = v1beta1.FailurePolicy{Type: v1beta1.FailContinue, RestartLimit: 2}
	})
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		phase(v1beta1.PhaseCompleted)(collect, job)
		assert.EqualValues(collect, 1, job.Status.Failed)
	})
	await.Until(t, func(collect *assert.CollectT) {
		pods := podsOf(t.Context(), collect, c, job)[names[0]]
		require.Len(collect, pods, 1)
		assert.Equal(collect, new(int64(1)), pods[0].Spec.ActiveDeadlineSeconds)
	})
}

func TestTheDeadlineEndsTheJob(t *testing.T) {
	c := givenController(t, env)
	givenNodes(t, "", 2)
	job := givenJob(t, c, "runs", func(job *v1beta1.BroadcastJob) { job.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(1)) })
	eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		phase(v1beta1.PhaseFailed)(collect, job)
		assert.Equal(collect, "activeDeadlineSeconds (1) have passed", job.Status.Message)
	})
	await.Until(t, func(collect *assert.CollectT) { assert.Empty(collect, podsOf(t.Context(), collect, c, job)) })
}

// Whichever write is the last one of a manager, the next one ends the job, with one pod on each node.
func TestAKilledManagerLeavesNothingUndone(t *testing.T) {
	env.Need(t)
	for writes := int64(1); writes <= 5; writes++ {
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			c := env.Client(t)
			names := givenNodes(t, "", 3)
			job := givenJob(t, c, succeeds, func(job *v1beta1.BroadcastJob) { job.Spec.Parallelism = new(intstr.FromInt(2)) })
			send, dead := faults.Kill(writes)
			t.Run("killed", func(t *testing.T) {
				givenController(t, faults.Over(env, send))
				select {
				case <-dead:
				case <-t.Context().Done():
				}
			})
			givenController(t, env)
			eventually(t, c, job, phase(v1beta1.PhaseCompleted))
			for node, pods := range podsOf(t.Context(), t, c, job) {
				assert.Contains(t, names, node)
				assert.Len(t, pods, 1, node)
			}
		})
	}
}

// The kubelet reports a last phase of a pod that is deleted while it runs, and asks for its end some time later, which a
// finalizer may delay. That fails no job; its node gets another one.
func TestADeletedPodHasNotFailed(t *testing.T) {
	c := givenController(t, env)
	givenNodes(t, "", 1)
	mute := givenMuteNode(t, c)
	job := givenJob(t, c, "runs", toleratesMute, func(job *v1beta1.BroadcastJob) { job.Spec.FailurePolicy.Type = v1beta1.FailFast })
	counts := func(active int32) {
		t.Helper()
		eventually(t, c, job, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
			phase(v1beta1.PhaseRunning)(collect, job)
			assert.Equal(collect, [3]int32{2, active, 0}, [3]int32{job.Status.Desired, job.Status.Active, job.Status.Failed})
		})
	}
	counts(2)
	var pod *corev1.Pod // the other one is bound by then
	await.Until(t, func(collect *assert.CollectT) {
		pending := podsOf(t.Context(), collect, c, job)[""]
		require.Len(collect, pending, 1)
		pod = &pending[0]
	})
	bind(t, c, job, pod, mute.Name)
	edit(t, c, pod, func(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/hold"} })
	require.NoError(t, c.Delete(t.Context(), pod))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	before := client.MergeFrom(pod.DeepCopy())
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error", FinishedAt: metav1.Now()},
	}}}
	require.NoError(t, c.Status().Patch(t.Context(), pod, before))
	counts(1)
	asked := pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	await.Until(t, func(collect *assert.CollectT) { assert.Greater(collect, time.Since(asked), 2*time.Second) })
	require.NoError(t, c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	require.True(t, pod.DeletionTimestamp.After(asked), "the server has moved it")
	edit(t, c, job, func(job *v1beta1.BroadcastJob) { job.Spec.Parallelism = new(intstr.FromInt(3)) })
	eventually(t, c, job, func(collect *assert.CollectT, now *v1beta1.BroadcastJob) {
		assert.Equal(collect, job.Generation, now.Status.ObservedGeneration)
	})
	edit(t, c, pod, func(pod *corev1.Pod) { pod.Finalizers = nil })
	counts(2)
}

// givenMuteNode makes a node without a kubelet, which nobody runs on who does not tolerate that.
func givenMuteNode(t *testing.T, c client.Client) *corev1.Node {
	t.Helper()
	mute := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: labelOf(t) + "-mute", Labels: map[string]string{"test": labelOf(t)}}}
	mute.Spec.Taints = []corev1.Taint{{Key: "mute", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	mute.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
	require.NoError(t, c.Create(t.Context(), mute))
	edit(t, c, mute, func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[:1] }) // admission has marked it as not ready
	return mute
}

func toleratesMute(job *v1beta1.BroadcastJob) {
	job.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "mute", Operator: corev1.TolerationOpEqual, Value: "a", Effect: corev1.TaintEffectNoSchedule}}
}
