package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

func onExit(do batchv1.PodFailurePolicyAction, operator batchv1.PodFailurePolicyOnExitCodesOperator, codes ...int32) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{
		Action: do, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: operator, Values: codes},
	}
}

func ignoreDisruption() batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{
		Action: batchv1.PodFailurePolicyActionIgnore, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}
}

func failing(rules ...batchv1.PodFailurePolicyRule) func(*v1beta1.BroadcastJob) {
	return func(j *v1beta1.BroadcastJob) { j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: rules} }
}

// disrupted has the pod fail so long ago because the cluster took it away.
func disrupted(ago time.Duration) func(*corev1.Pod) {
	return func(o *corev1.Pod) {
		running(o)
		o.Status.Phase = corev1.PodFailed
		o.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: at(-ago)}}
	}
}

func exited(code int32, ago time.Duration) func(*corev1.Pod) {
	return func(o *corev1.Pod) {
		failure(o)
		end := o.Status.ContainerStatuses[0].State.Terminated
		end.ExitCode, end.FinishedAt = code, at(-ago)
	}
}

// beside has another container of a failed pod ended, too.
func beside(code int32, ago time.Duration) func(*corev1.Pod) {
	return func(o *corev1.Pod) {
		o.Status.ContainerStatuses = append(o.Status.ContainerStatuses, corev1.ContainerStatus{Name: "other", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", FinishedAt: at(-ago)},
		}})
	}
}

// lost is a pod that has failed without a container that tells of it.
func lost(o *corev1.Pod) { running(o); o.Status.Phase = corev1.PodFailed }

func reason(text string) func(*corev1.Pod) {
	return func(o *corev1.Pod) { o.Status.Reason = text }
}

func TestRulesMatchFailures(t *testing.T) {
	const in, notIn = batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn
	const count, ignore, fail = batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionFailJob
	other := onExit(ignore, in, 3)
	other.OnExitCodes.ContainerName = new("other")
	for name, c := range map[string]struct {
		rules []batchv1.PodFailurePolicyRule
		pod   func(*corev1.Pod)
		want  batchv1.PodFailurePolicyAction
	}{
		"a code in the list":             {[]batchv1.PodFailurePolicyRule{onExit(ignore, in, 1, 3)}, exited(3, 0), ignore},
		"a code that is not":             {[]batchv1.PodFailurePolicyRule{onExit(ignore, in, 1, 2)}, exited(3, 0), ""},
		"any but":                        {[]batchv1.PodFailurePolicyRule{onExit(fail, notIn, 1, 2)}, exited(3, 0), fail},
		"success is no code":             {[]batchv1.PodFailurePolicyRule{onExit(fail, notIn, 1, 2)}, exited(0, 0), ""},
		"another container":              {[]batchv1.PodFailurePolicyRule{other}, exited(3, 0), ""},
		"the first rule that matches":    {[]batchv1.PodFailurePolicyRule{onExit(count, in, 3), onExit(fail, notIn, 1)}, exited(3, 0), count},
		"a condition":                    {[]batchv1.PodFailurePolicyRule{ignoreDisruption()}, disrupted(0), ignore},
		"no condition":                   {[]batchv1.PodFailurePolicyRule{ignoreDisruption()}, exited(3, 0), ""},
		"a pod that runs has not failed": {[]batchv1.PodFailurePolicyRule{ignoreDisruption()}, func(o *corev1.Pod) { disrupted(0)(o); running(o) }, ""},
		"no rules":                       {nil, exited(3, 0), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, do := matching(&batchv1.PodFailurePolicy{Rules: c.rules}, pod("a", "n1", c.pod))
			assert.Equal(t, c.want, do)
		})
	}
}

func TestPoliciesOfPodFailures(t *testing.T) {
	rules := failing(
		onExit(batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyOnExitCodesOpIn, 42),
		ignoreDisruption(),
		onExit(batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyOnExitCodesOpIn, 3),
	)
	two := []Node{node("n1"), node("n2")}
	type list = []*corev1.Pod
	for name, c := range map[string]struct {
		job     *v1beta1.BroadcastJob
		nodes   []Node
		pods    list
		plan    string
		status  string
		message string
		notices []string
	}{
		"an ignored failure waits for its time": {job(rules), two, list{pod("a", "n1", disrupted(4*time.Second)), pod("b", "n2", success)},
			"", "running desired 2 active 0 succeeded 1 failed 0", "1 nodes get a new pod, because podFailurePolicy ignores the failure of the last one", nil},
		"and makes room": {job(rules), two, list{pod("a", "n1", disrupted(10*time.Second)), pod("b", "n2", success)},
			"Delete a; ", "running desired 2 active 0 succeeded 1 failed 0", "1 nodes get a new pod, because podFailurePolicy ignores the failure of the last one", nil},
		"then another pod comes": {job(rules), two, list{pod("b", "n2", success)},
			"Create on node n1; ", "running desired 2 active 0 succeeded 1 failed 0", "", nil},
		"what leaves is not deleted again": {job(rules), two, list{pod("a", "n1", disrupted(time.Minute), terminating), pod("b", "n2", success)},
			"", "running desired 2 active 0 succeeded 1 failed 0", "1 nodes get a new pod, because podFailurePolicy ignores the failure of the last one", nil},
		"a node that takes no pod is not waited for": {job(rules), []Node{cordoned("n1"), node("n2")}, list{pod("a", "n1", disrupted(time.Minute)), pod("b", "n2", success)},
			"", "completed desired 1 active 0 succeeded 1 failed 0", "1 of 1 nodes have succeeded, 0 have failed", []string{EventComplete}},
		"a pause deletes nothing": {job(rules, paused), two, list{pod("a", "n1", disrupted(time.Minute))},
			"", "paused desired 2 active 0 succeeded 0 failed 0", MessagePaused, nil},
		"a rule fails the job, whatever the policy": {job(rules, policy(v1beta1.FailContinue)), two, list{pod("a", "n1", exited(42, 0)), pod("b", "n2", running)},
			"", "failed desired 2 active 0 succeeded 0 failed 2", "podFailurePolicy rule 0: pod a on node n1 (exit code 42) failed", []string{EventPolicy}},
		"and in place of a pause": {job(rules, policy(v1beta1.FailPause)), two, list{pod("a", "n1", exited(42, 0))},
			"", "failed desired 2 active 0 succeeded 0 failed 1", "podFailurePolicy rule 0: pod a on node n1 (exit code 42) failed", []string{EventPolicy}},
		"but not during one": {job(rules, policy(v1beta1.FailPause), paused), two, list{pod("a", "n1", exited(42, 0))},
			"PatchMetadata job; ", "running desired 2 active 0 succeeded 0 failed 1", "", nil},
		"what counts is left to the policy": {job(rules), two, list{pod("a", "n1", exited(3, 0))},
			"", "failed desired 2 active 0 succeeded 0 failed 1", "failurePolicy FailFast: pod a on node n1 (exit code 3) failed", []string{EventFailedPod}},
		"as is what no rule matches": {job(rules, policy(v1beta1.FailContinue)), []Node{node("n1")}, list{pod("a", "n1", exited(5, 0))},
			"", "completed desired 1 active 0 succeeded 0 failed 1", "0 of 1 nodes have succeeded, 1 have failed", []string{EventComplete}},
	} {
		t.Run(name, func(t *testing.T) {
			todo := compute(t, given(c.job, c.nodes, c.pods...))
			assertPlan(t, &todo, c.plan, c.status, c.notices...)
			assert.Equal(t, c.message, todo.status.Message)
		})
	}
	s := given(job(rules), two, pod("a", "n1", disrupted(4*time.Second)), pod("b", "n2", running))
	assert.Equal(t, 6*time.Second, compute(t, s).RequeueAfter)
}

func TestAPodEndsWithItsLastContainer(t *testing.T) {
	endOf := (&pass{Snapshot: Snapshot{Now: now}}).endOf
	o := pod("a", "n1", exited(3, 20*time.Second))
	assert.Equal(t, now.Add(-20*time.Second), endOf(o).UTC())
	o.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(now.Add(-5 * time.Second))},
	}}}
	assert.Equal(t, now.Add(-5*time.Second), endOf(o).UTC())
	assert.Equal(t, now.Add(-time.Minute), endOf(pod("b", "n1")).UTC(), "it was created then, and nothing more is known")
	for _, wrong := range []time.Duration{-time.Hour, time.Hour} {
		assert.Equal(t, now.Add(-time.Minute), endOf(pod("c", "n1", exited(3, wrong))).UTC(), "its node has another time of day")
	}
}
