package jobs

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

func TestEveryNodeGetsAPod(t *testing.T) {
	t.Parallel()
	job := newBroadcastJob(t, "sleep", "1s")
	require.NoError(t, world.Client.Create(t.Context(), job))
	endsEverywhere(t, job, v1beta1.JobComplete)
	assert.EqualValues(t, len(nodes()), job.Status.Succeeded)
	assert.Equal(t, v1beta1.PhaseCompleted, job.Status.Phase)
	pods := world.Pods(t, job.Namespace)
	assert.Equal(t, nodes(), nodesOf(pods))
	for i := range pods {
		assert.Equal(t, corev1.PodSucceeded, pods[i].Status.Phase)
	}
}

// A node that takes no pods when the job begins gets its own when it does, and those that have had theirs get no other.
func TestNodesThatAreFreedGetAPod(t *testing.T) {
	t.Parallel()
	cordoned, tainted, all := nodes()[0], nodes()[1], len(nodes())
	t.Cleanup(func() {
		for _, node := range []string{cordoned, tainted} {
			patchNode(context.WithoutCancel(t.Context()), t, node, `{"spec":{"unschedulable":null,"taints":null}}`)
		}
	})
	patchNode(t.Context(), t, cordoned, `{"spec":{"unschedulable":true}}`)
	patchNode(t.Context(), t, tainted, `{"spec":{"taints":[{"key":"example.io/busy","effect":"NoSchedule"}]}}`)
	job := newBroadcastJob(t, "sleep", "0s")
	job.Spec.Template.Spec.Tolerations = nil
	job.Spec.CompletionPolicy.Type = v1beta1.CompletionNever
	job.Spec.Paused = true // until the operator has seen both
	require.NoError(t, world.Client.Create(t.Context(), job))
	story.Reaches(t, world, job, "a count of the free nodes", func(job *v1beta1.BroadcastJob) error {
		return story.Want(int(job.Status.Desired) == all-2, "status is %+v", job.Status)
	})
	story.Edit(t, world, job, func(job *v1beta1.BroadcastJob) { job.Spec.Paused = false })
	runOn := func(n int) {
		t.Helper()
		story.Reaches(t, world, job, fmt.Sprintf("success on %d nodes", n), func(job *v1beta1.BroadcastJob) error {
			s := &job.Status
			return story.Want(int(s.Succeeded) == n && int(s.Desired) == n && s.Phase == v1beta1.PhaseRunning, "status is %+v", s)
		})
	}
	runOn(all - 2)
	patchNode(t.Context(), t, cordoned, `{"spec":{"unschedulable":null}}`)
	runOn(all - 1)
	patchNode(t.Context(), t, tainted, `{"spec":{"taints":null}}`)
	runOn(all)
	assert.Equal(t, nodes(), nodesOf(world.Pods(t, job.Namespace)))
	assert.Nil(t, job.Status.CompletionTime)
}

// Where one pod fails, the others are deleted, and the status says which one it was, and how it ended.
func TestAFailedPodEndsTheJob(t *testing.T) {
	t.Parallel()
	job := newBroadcastJob(t, "-address", ":8080")
	require.NoError(t, world.Client.Create(t.Context(), job))
	var bad corev1.Pod
	story.Eventually(t, "a pod on every node", func(context.Context) error {
		pods := world.Pods(t, job.Namespace)
		ready := len(pods) == len(nodes()) && !slices.ContainsFunc(pods, func(o corev1.Pod) bool { return !story.IsReady(&o) })
		if ready {
			bad = pods[0]
		}
		return story.Want(ready, "pods are %v", story.Identities(pods))
	})
	crash(t, &bad)
	endsEverywhere(t, job, v1beta1.JobFailed)
	assert.EqualValues(t, len(nodes()), job.Status.Failed)
	assert.Equal(t, v1beta1.PhaseFailed, job.Status.Phase)
	require.NotEmpty(t, job.Status.Failures)
	first := job.Status.Failures[0]
	assert.Equal(t, v1beta1.PodFailure{Node: bad.Spec.NodeName, Pod: bad.Name, Reason: "Error", ExitCode: new(int32(1)), Message: first.Message}, first)
	story.Eventually(t, "the end of the others", func(context.Context) error {
		pods := world.Pods(t, job.Namespace)
		return story.Want(len(pods) == 1 && pods[0].UID == bad.UID, "pods are %v", story.Identities(pods))
	})
}

// A job that one failed pod has paused goes on when its user says so, and tells of each node on which a pod has failed.
func TestAFailedPodPausesTheJob(t *testing.T) {
	t.Parallel()
	job := newBroadcastJob(t, "-crash")
	job.Spec.Parallelism = new(intstr.FromInt32(1))
	job.Spec.FailurePolicy.Type = v1beta1.FailPause
	require.NoError(t, world.Client.Create(t.Context(), job))
	story.Reaches(t, world, job, "a pause", func(job *v1beta1.BroadcastJob) error {
		return story.Want(job.Spec.Paused && job.Status.Phase == v1beta1.PhasePaused, "status is %+v", job.Status)
	})
	assert.Len(t, world.Pods(t, job.Namespace), 1)
	story.Edit(t, world, job, func(job *v1beta1.BroadcastJob) {
		job.Spec.Paused, job.Spec.FailurePolicy.Type = false, v1beta1.FailContinue
	})
	endsEverywhere(t, job, v1beta1.JobComplete)
	require.Len(t, job.Status.Failures, len(nodes()))
	for i, failure := range job.Status.Failures {
		assert.Equal(t, nodes()[i], failure.Node)
		assert.Equal(t, new(int32(1)), failure.ExitCode)
	}
}

// A pod that restarts too often is ended by its node, and stays with what it has left.
func TestRestartsAreLimited(t *testing.T) {
	t.Parallel()
	job := newBroadcastJob(t, "-crash")
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	job.Spec.FailurePolicy = v1beta1.FailurePolicy{Type: v1beta1.FailContinue, RestartLimit: 1}
	require.NoError(t, world.Client.Create(t.Context(), job))
	endsEverywhere(t, job, v1beta1.JobComplete)
	require.Len(t, job.Status.Failures, len(nodes()))
	for _, failure := range job.Status.Failures {
		assert.Equal(t, "RestartLimitExceeded", failure.Reason)
		assert.Equal(t, new(int32(1)), failure.ExitCode)
	}
	story.Eventually(t, "the end of the pods", func(context.Context) error {
		pods := world.Pods(t, job.Namespace)
		ended := !slices.ContainsFunc(pods, func(o corev1.Pod) bool { return o.Status.Phase != corev1.PodFailed })
		return story.Want(ended && len(pods) == len(nodes()), "pods are %+v", pods)
	})
}

func TestAnEndedJobGoesWithItsPods(t *testing.T) {
	t.Parallel()
	job := newBroadcastJob(t, "sleep", "0s")
	require.NoError(t, world.Client.Create(t.Context(), job))
	endsEverywhere(t, job, v1beta1.JobComplete)
	story.Edit(t, world, job, func(job *v1beta1.BroadcastJob) { job.Spec.CompletionPolicy.TTLSecondsAfterFinished = new(int32(1)) })
	story.Gone(t, world, job)
	story.Eventually(t, "the end of the pods", func(context.Context) error {
		pods := world.Pods(t, job.Namespace)
		return story.Want(len(pods) == 0, "pods are %v", story.Identities(pods))
	})
}

// newBroadcastJob returns a job for all nodes, also those that another story keeps free of pods.
func newBroadcastJob(t *testing.T, args ...string) *v1beta1.BroadcastJob {
	t.Helper()
	job := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace(t), Name: "job"}}
	job.Spec.Template = newTemplate(args...)
	return job
}

// newTemplate returns what pods are made from that run on any node.
func newTemplate(args ...string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(3)),
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		Containers:  []corev1.Container{{Name: "main", Image: app + "v1", ImagePullPolicy: corev1.PullIfNotPresent, Args: args}},
	}}
}

// endsEverywhere waits until the job for all nodes has the condition.
func endsEverywhere(t *testing.T, job *v1beta1.BroadcastJob, condition v1beta1.JobConditionType) {
	t.Helper()
	story.Reaches(t, world, job, string(condition), func(job *v1beta1.BroadcastJob) error {
		return story.Want(story.Condition(job, string(condition)).Status == metav1.ConditionTrue, "status is %+v", job.Status)
	})
	assert.EqualValues(t, len(nodes()), job.Status.Desired)
	assert.Zero(t, job.Status.Active)
	assert.NotNil(t, job.Status.CompletionTime)
}

// nodes returns the names of all nodes, in order.
func nodes() []string {
	var all []string
	for _, n := range world.Cluster.Nodes() {
		all = append(all, n.Name())
	}
	slices.Sort(all)
	return all
}

// nodesOf returns the nodes of the pods, in order.
func nodesOf(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, pods[i].Spec.NodeName)
	}
	slices.Sort(all)
	return all
}

// crash has the application of the pod end with an error.
func crash(t *testing.T, o *corev1.Pod) {
	t.Helper()
	_, _ = world.Ask(t, o, "/crash") // the end of the process may come before the answer
}

func patchNode(ctx context.Context, t *testing.T, name, patch string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, world.Client.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(patch))))
}
