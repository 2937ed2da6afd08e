package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/pods/eligibility"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(d)) }

// job began a minute ago; its pods never restart.
func job(changes ...func(*v1beta1.BroadcastJob)) *v1beta1.BroadcastJob {
	j := &v1beta1.BroadcastJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "job-uid", Generation: 1}}
	j.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}
	j.Status.StartTime = new(at(-time.Minute))
	j.Status.Phase, j.Status.ObservedGeneration = v1beta1.PhaseRunning, 1
	for _, change := range changes {
		change(j)
	}
	return j
}

func policy(f v1beta1.FailurePolicyType) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.FailurePolicy.Type = f }
}

func never(j *v1beta1.BroadcastJob) { j.Spec.CompletionPolicy.Type = v1beta1.CompletionNever }

func paused(j *v1beta1.BroadcastJob) { j.Spec.Paused = true }

func restarting(j *v1beta1.BroadcastJob) {
	j.Spec.Template.Spec.RestartPolicy, j.Spec.FailurePolicy.RestartLimit = corev1.RestartPolicyOnFailure, 2
}

func parallel(text string) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.Parallelism = new(intstr.Parse(text)) }
}

func deadline(seconds int64) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.CompletionPolicy.ActiveDeadlineSeconds = &seconds }
}

func ttl(seconds int32) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.CompletionPolicy.TTLSecondsAfterFinished = &seconds }
}

func ending(phase v1beta1.BroadcastJobPhase, kind v1beta1.JobConditionType) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) {
		j.Status.Phase, j.Status.CompletionTime = phase, new(at(-10*time.Second))
		j.Status.Conditions = []v1beta1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
	}
}

// pod is one of the job on a node.
func pod(name, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "1", CreationTimestamp: at(-time.Minute),
	}}
	o.Spec.RestartPolicy = corev1.RestartPolicyNever
	eligibility.Pin(&o.Spec, node)
	o.Status.Phase = corev1.PodPending
	for _, change := range changes {
		change(o)
	}
	return o
}

func running(o *corev1.Pod) {
	o.Spec.NodeName, o.Spec.Affinity, o.Status.Phase = eligibility.NodeOf(o), nil, corev1.PodRunning
}

func success(o *corev1.Pod) { running(o); o.Status.Phase = corev1.PodSucceeded }

func failure(o *corev1.Pod) {
	running(o)
	o.Status.Phase = corev1.PodFailed
	o.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: "no disk\n"},
	}}}
}

func restarted(times int32) func(*corev1.Pod) {
	return func(o *corev1.Pod) {
		running(o)
		o.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		o.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: times, LastTerminationState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 7, Reason: "Error"},
		}}}
	}
}

func terminating(o *corev1.Pod) { o.DeletionTimestamp = new(at(0)) }

// deleted has the pod deleted two seconds ago, with half a minute to end.
func deleted(o *corev1.Pod) { deletedAgo(2 * time.Second)(o) }

func deletedAgo(ago time.Duration) func(*corev1.Pod) {
	return func(o *corev1.Pod) {
		o.DeletionTimestamp, o.DeletionGracePeriodSeconds = new(at(30*time.Second-ago)), new(int64(30))
	}
}

// removed has the kubelet ask for the end of a deleted pod, as the server shows it until the pod is gone.
func removed(o *corev1.Pod) {
	o.DeletionTimestamp, o.DeletionGracePeriodSeconds = new(at(0)), new(int64(0))
}

func node(name string, v ...eligibility.Verdict) Node {
	n := Node{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}, Verdict: eligibility.Verdict{ShouldRun: true, ShouldContinue: true}}
	if len(v) > 0 {
		n.Verdict = v[0]
	}
	return n
}

// young is a node that is younger than the pods.
func young(name string) Node {
	n := node(name)
	n.Node.CreationTimestamp = at(-time.Second)
	return n
}

func cordoned(name string) Node { return node(name, eligibility.Verdict{ShouldContinue: true}) }

func unfit(name string) Node { return node(name, eligibility.Verdict{}) }

func given(j *v1beta1.BroadcastJob, nodes []Node, pods ...*corev1.Pod) Snapshot {
	return Snapshot{Job: j, Owner: metav1.OwnerReference{Name: j.Name, UID: j.UID}, Nodes: nodes, Pods: pods, Now: now, Seed: 1}
}

// compute makes the plan twice, and looks that it changes nothing.
func compute(t *testing.T, s Snapshot) Plan {
	t.Helper()
	jobBefore, podsBefore := s.Job.DeepCopy(), make([]*corev1.Pod, len(s.Pods))
	for i, o := range s.Pods {
		podsBefore[i] = o.DeepCopy()
	}
	todo := Compute(s)
	require.Equal(t, todo.String(), func() string { again := Compute(s); return again.String() }())
	require.Equal(t, jobBefore, s.Job)
	for i, o := range s.Pods {
		require.Equal(t, podsBefore[i], o)
	}
	return todo
}

// brief tells a plan without names that are made up.
func brief(todo *Plan) string {
	text := ""
	for _, step := range todo.Steps {
		for i := range step.Actions {
			a := &step.Actions[i]
			name := a.Object.GetName()
			if a.GeneratedName {
				name = a.Message
			}
			text += fmt.Sprintf("%s %s; ", a.Verb, name)
		}
	}
	return text
}

func numbers(s *v1beta1.BroadcastJobStatus) string {
	return fmt.Sprintf("%s desired %d active %d succeeded %d failed %d", s.Phase, s.Desired, s.Active, s.Succeeded, s.Failed)
}

func reasonsOf(todo *Plan) (reasons []string) {
	for _, n := range todo.Notices {
		reasons = append(reasons, n.Reason)
	}
	return reasons
}

func assertPlan(t *testing.T, todo *Plan, want, status string, notices ...string) {
	t.Helper()
	assert.Equal(t, want, brief(todo))
	if status == "" {
		assert.Nil(t, todo.status)
	} else if assert.NotNil(t, todo.status) {
		assert.Equal(t, status, numbers(todo.status))
	}
	assert.Equal(t, notices, reasonsOf(todo))
	assert.NoError(t, todo.Err)
}
