package jobs

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

func TestSidecars(t *testing.T) {
	givenTerminator(t)
	t.Run("the example of the page", func(t *testing.T) {
		t.Parallel()
		publish(t, "v1", "busybox:1.37")
		publish(t, "v1", "nginx:1.28")
		namespace := world.Namespace(t)
		for _, example := range examples(t, "sidecarterminator") {
			out, err := world.ApplyExample(t, namespace, "jobs", example)
			require.NoError(t, err, out)
			assert.NotContains(t, out, "Warning")
		}
		ends(t, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "report"}}, batchv1.JobComplete)
		assert.Equal(t, map[string]int32{"main": 0, "proxy": 0}, codes(t, namespace, corev1.PodSucceeded))
	})
	t.Run("restartPolicy OnFailure", func(t *testing.T) {
		t.Parallel()
		job := newJob(world.Namespace(t), corev1.RestartPolicyOnFailure, []string{"sleep", "2s"}, nil)
		require.NoError(t, world.Client.Create(t.Context(), job))
		ends(t, job, batchv1.JobComplete)
		assert.Equal(t, map[string]int32{"main": 0, "proxy": 0}, codes(t, job.Namespace, corev1.PodSucceeded))
	})
	t.Run("a sidecar whose exit code counts", func(t *testing.T) {
		t.Parallel()
		job := newJob(world.Namespace(t), corev1.RestartPolicyNever, []string{"sleep", "2s"}, []string{"-deaf"})
		require.NoError(t, world.Client.Create(t.Context(), job))
		ends(t, job, batchv1.JobFailed)
		assert.Equal(t, map[string]int32{"main": 0, "proxy": 137}, codes(t, job.Namespace, corev1.PodFailed))
	})
	ignore := corev1.EnvVar{Name: v1beta1.IgnoreSidecarExitCodeEnv, Value: "true"}
	t.Run("a sidecar whose exit code is ignored", func(t *testing.T) {
		t.Parallel()
		job := newJob(world.Namespace(t), corev1.RestartPolicyNever, []string{"sleep", "2s"}, []string{"-deaf"}, ignore)
		require.NoError(t, world.Client.Create(t.Context(), job))
		ends(t, job, batchv1.JobComplete)
		assert.Equal(t, map[string]int32{"main": 0, "proxy": 137}, codes(t, job.Namespace, corev1.PodSucceeded))
	})
	t.Run("a main container that fails", func(t *testing.T) {
		t.Parallel()
		job := newJob(world.Namespace(t), corev1.RestartPolicyNever, []string{"-address", ":9090", "-crash-after", "2s"}, nil, ignore)
		require.NoError(t, world.Client.Create(t.Context(), job))
		ends(t, job, batchv1.JobFailed)
		assert.Equal(t, map[string]int32{"main": 1, "proxy": 0}, codes(t, job.Namespace, corev1.PodFailed))
	})
}

// newJob returns a Job that is tried once, with a main container and a sidecar that runs until it is stopped.
func newJob(namespace string, policy corev1.RestartPolicy, main, sidecar []string, marks ...corev1.EnvVar) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job"}}
	job.Spec.BackoffLimit = new(int32(0))
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: policy, TerminationGracePeriodSeconds: new(int64(3)),
		Containers: []corev1.Container{
			{Name: "main", Image: app + "v1", Args: main},
			{Name: "proxy", Image: app + "v1", Args: sidecar, Env: append(marks, corev1.EnvVar{Name: v1beta1.TerminateSidecarEnv, Value: "true"})},
		},
	}
	return job
}

// ends waits until the Job has the condition.
func ends(t *testing.T, job *batchv1.Job, condition batchv1.JobConditionType) {
	t.Helper()
	story.Reaches(t, world, job, string(condition), func(job *batchv1.Job) error {
		return story.Want(story.Condition(job, string(condition)).Status == metav1.ConditionTrue, "status is %+v", job.Status)
	})
}

// codes waits until all containers of the one pod of the namespace have ended, and returns their exit codes.
func codes(t *testing.T, namespace string, phase corev1.PodPhase) map[string]int32 {
	t.Helper()
	var all map[string]int32
	story.Eventually(t, "the end of all containers", func(context.Context) error {
		pods := world.Pods(t, namespace)
		if len(pods) != 1 || pods[0].Status.Phase != phase {
			return story.Want(false, "pods are %+v", pods)
		}
		all = map[string]int32{}
		for _, s := range pods[0].Status.ContainerStatuses {
			if s.State.Terminated == nil {
				return story.Want(false, "%s is %+v", s.Name, s.State)
			}
			all[s.Name] = s.State.Terminated.ExitCode
		}
		return nil
	})
	return all
}
