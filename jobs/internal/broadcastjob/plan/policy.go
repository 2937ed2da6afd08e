package plan

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// RetryDelay is how long after its end a pod with an ignored failure is replaced: as long as a Job waits at first.
const RetryDelay = 10 * time.Second

// matching returns the first rule of the policy that matches how the pod has failed, and its index; -1 if none does.
// The rules are the same as for a Job (KEP-3329).
func matching(policy *batchv1.PodFailurePolicy, pod *corev1.Pod) (int, batchv1.PodFailurePolicyAction) {
	if policy == nil || pod.Status.Phase != corev1.PodFailed {
		return -1, ""
	}
	i := slices.IndexFunc(policy.Rules, func(rule batchv1.PodFailurePolicyRule) bool {
		if rule.OnExitCodes != nil {
			return matchesExitCode(rule.OnExitCodes, pod)
		}
		return slices.ContainsFunc(rule.OnPodConditions, func(want batchv1.PodFailurePolicyOnPodConditionsPattern) bool {
			return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == want.Type && (c.Status == want.Status || want.Status == "" && c.Status == corev1.ConditionTrue)
			})
		})
	})
	if i < 0 {
		return i, ""
	}
	return i, policy.Rules[i].Action
}

// matchesExitCode reports whether a container that the requirement concerns has failed with one of its codes.
func matchesExitCode(want *batchv1.PodFailurePolicyOnExitCodesRequirement, pod *corev1.Pod) bool {
	return slices.ContainsFunc(statusesOf(pod), func(c corev1.ContainerStatus) bool {
		end := c.State.Terminated
		if end == nil || end.ExitCode == 0 || want.ContainerName != nil && *want.ContainerName != c.Name {
			return false
		}
		return slices.Contains(want.Values, end.ExitCode) == (want.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn)
	})
}

// fatal reports whether a rule fails the job.
func (p *pass) fatal() bool {
	return slices.ContainsFunc(p.places, func(l *place) bool {
		if l.state != failed {
			return false
		}
		_, do := matching(p.Job.Spec.PodFailurePolicy, l.pod)
		return do == batchv1.PodFailurePolicyActionFailJob
	})
}

// failByPolicy fails the job if a rule demands it for a failed pod, and reports whether it did.
func (p *pass) failByPolicy() bool {
	for _, l := range p.places {
		if l.state != failed {
			continue
		}
		if i, do := matching(p.Job.Spec.PodFailurePolicy, l.pod); do == batchv1.PodFailurePolicyActionFailJob {
			p.fail(EventPolicy, fmt.Sprintf("podFailurePolicy rule %d: pod %s on node %s%s failed", i, l.pod.Name, l.name, withExitCode(failureOf(l.name, l.pod).ExitCode)))
			return true
		}
	}
	return false
}

func withExitCode(code *int32) string {
	if code == nil {
		return ""
	}
	return fmt.Sprintf(" (exit code %d)", *code)
}

// retry deletes pods with an ignored failure, some time after their end, so that others take their place.
func (p *pass) retry() {
	step := action.Step{Name: "delete ignored"}
	for _, l := range p.places {
		if !l.retries() || l.pod.DeletionTimestamp != nil {
			continue
		}
		if left := RetryDelay - p.Now.Sub(p.endOf(l.pod)); left > 0 {
			p.plan.RequeueWithin(left)
			continue
		}
		i, _ := matching(p.Job.Spec.PodFailurePolicy, l.pod)
		step.Actions = append(step.Actions, deletePod(l.pod, "Ignored", fmt.Sprintf("podFailurePolicy rule %d ignores its failure", i)))
	}
	p.plan.Add(step)
}

// endOf returns when the last container of a failed pod has ended, or when the pod was disrupted before it had any. A
// time to come is by a node's clock that is ahead, and does not count; nor does one before the pod's creation.
func (p *pass) endOf(pod *corev1.Pod) time.Time {
	end := pod.CreationTimestamp.Time
	later := func(at time.Time) {
		if at.After(end) && !at.After(p.Now) {
			end = at
		}
	}
	for _, c := range statusesOf(pod) {
		if c.State.Terminated != nil {
			later(c.State.Terminated.FinishedAt.Time)
		}
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.DisruptionTarget {
			later(pod.Status.Conditions[i].LastTransitionTime.Time)
		}
	}
	return end
}

// rules are the fields of the spec about pods that have failed.
type rules struct {
	restartLimit int32
	policy       *batchv1.PodFailurePolicy
}

func rulesOf(job *v1beta1.BroadcastJob) rules {
	return rules{restartLimit: job.Spec.FailurePolicy.RestartLimit, policy: job.Spec.PodFailurePolicy}
}
