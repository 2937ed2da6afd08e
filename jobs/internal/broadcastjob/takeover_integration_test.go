package broadcastjob_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// Jobs of OpenKruise go on where they are: the pods that they have made count, whichever version their owner reference
// names, none runs twice, and what has ended stays as it is. Nothing but statuses is written.
func TestWhatOpenKruiseHasMadeIsTakenOver(t *testing.T) {
	c := env.Client(t)
	nodes, namespace := givenNodes(t, "", 2), env.Namespace(t)
	given := func(name string, status v1beta1.BroadcastJobStatus) *v1beta1.BroadcastJob {
		job := givenJob(t, c, "runs", func(job *v1beta1.BroadcastJob) {
			job.Namespace, job.Name = namespace, name
			job.Spec.CompletionPolicy.Type, job.Spec.FailurePolicy.Type = v1beta1.CompletionAlways, v1beta1.FailFast
		})
		before := client.MergeFrom(job.DeepCopy())
		job.Status = status
		require.NoError(t, c.Status().Patch(t.Context(), job, before))
		return job
	}
	now := metav1.Now()
	running := given("running", v1beta1.BroadcastJobStatus{
		StartTime: &now, Active: 1, Succeeded: 1, Desired: 2, Phase: v1beta1.PhaseRunning,
	})
	over := func(kind v1beta1.JobConditionType, phase v1beta1.BroadcastJobPhase) v1beta1.BroadcastJobStatus {
		return v1beta1.BroadcastJobStatus{
			StartTime: &now, CompletionTime: &now, Succeeded: 1, Failed: 1, Desired: 2, Phase: phase,
			Conditions: []v1beta1.JobCondition{{
				Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now, Reason: string(kind), Message: "Job completed",
			}},
		}
	}
	completed := given("completed", over(v1beta1.JobComplete, v1beta1.PhaseCompleted))
	failed := given("failed", over(v1beta1.JobFailed, v1beta1.PhaseFailed))
	leftBy(t, c, running, succeeds, nodes[0], corev1.PodSucceeded)
	last := leftBy(t, c, running, "runs", nodes[1], corev1.PodRunning)
	pods := env.Pods(t, namespace)
	audit := env.Audit(t)

	givenControllerIn(t, env, namespace)
	eventually(t, c, running, func(collect *assert.CollectT, job *v1beta1.BroadcastJob) {
		assert.Equal(collect, job.Generation, job.Status.ObservedGeneration)
		assert.Equal(collect, [4]int32{2, 1, 1, 0}, [4]int32{job.Status.Desired, job.Status.Active, job.Status.Succeeded, job.Status.Failed})
		assert.Equal(collect, now.Unix(), job.Status.StartTime.Unix())
	})
	assert.Equal(t, []string{"patch broadcastjobs/status"}, audit.Kinds(t, userAgent, namespace))
	assert.Equal(t, pods, env.Pods(t, namespace))
	for _, job := range []*v1beta1.BroadcastJob{completed, failed} {
		before := job.ResourceVersion
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(job), job))
		assert.Equal(t, before, job.ResourceVersion, job.Name)
	}

	edit(t, c, running, func(job *v1beta1.BroadcastJob) { job.Spec.Template.Spec.Containers[0].Image = succeeds })
	require.NoError(t, c.Delete(t.Context(), last)) // its node may get another one before the job completes
	eventually(t, c, running, phase(v1beta1.PhaseCompleted))
	assert.Len(t, podsOf(t.Context(), t, c, running)[nodes[0]], 1, "it ran once")
}

// leftBy makes the pod of a job on a node as OpenKruise does, and waits for its phase.
func leftBy(t *testing.T, c client.Client, job *v1beta1.BroadcastJob, image, node string, phase corev1.PodPhase) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, GenerateName: job.Name + "-",
			Labels: map[string]string{"broadcastjob-name": job.Name, "broadcastjob-controller-uid": string(job.UID)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.kruise.io/v1alpha1", Kind: "BroadcastJob", Name: job.Name, UID: job.UID,
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: *job.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.Containers[0].Image = image
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		}}},
	}}}
	require.NoError(t, c.Create(t.Context(), pod))
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		assert.Equal(collect, phase, pod.Status.Phase)
		assert.Equal(collect, node, pod.Spec.NodeName)
	})
	return pod
}
