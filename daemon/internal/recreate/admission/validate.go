package admission

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/prestop"
)

// minDeadline is the least activeDeadlineSeconds.
const minDeadline = 3

// Validate validates a request as a user sends it, before anything is filled in.
func Validate(r *v1beta1.ContainerRecreateRequest) field.ErrorList {
	spec := &r.Spec
	var errs field.ErrorList
	if spec.PodName == "" {
		errs = append(errs, field.Required(specPath().Child("podName"), ""))
	}
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(containersPath(), "name at least one container"))
	}
	for i := range spec.Containers {
		errs = append(errs, validateContainer(spec.Containers[:i], &spec.Containers[i], containersPath().Index(i))...)
	}
	if seconds := spec.ActiveDeadlineSeconds; seconds != nil && *seconds < minDeadline {
		errs = append(errs, field.Invalid(specPath().Child("activeDeadlineSeconds"), *seconds, fmt.Sprintf("must be at least %d", minDeadline)))
	}
	if seconds := spec.TTLSecondsAfterFinished; seconds != nil {
		errs = append(errs, notNegative(int64(*seconds), specPath().Child("ttlSecondsAfterFinished"))...)
	}
	if spec.Strategy != nil {
		errs = append(errs, validateStrategy(spec.Strategy, specPath().Child("strategy"))...)
	}
	return errs
}

func validateContainer(before []v1beta1.ContainerToRecreate, c *v1beta1.ContainerToRecreate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case c.Name == "":
		errs = append(errs, field.Required(path.Child("name"), ""))
	case slices.ContainsFunc(before, func(other v1beta1.ContainerToRecreate) bool { return other.Name == c.Name }):
		errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
	}
	for _, member := range []struct {
		name  string
		given bool
	}{
		{"preStop", c.PreStop != nil}, {"ports", c.Ports != nil}, {"statusContext", c.StatusContext != nil},
	} {
		if member.given {
			errs = append(errs, field.Forbidden(path.Child(member.name), "filled by the system"))
		}
	}
	return errs
}

func validateStrategy(s *v1beta1.RecreateStrategy, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	policies := []v1beta1.FailurePolicy{v1beta1.FailurePolicyFail, v1beta1.FailurePolicyIgnore}
	if s.FailurePolicy != "" && !slices.Contains(policies, s.FailurePolicy) {
		errs = append(errs, field.NotSupported(path.Child("failurePolicy"), s.FailurePolicy, policies))
	}
	if s.TerminationGracePeriodSeconds != nil {
		errs = append(errs, notNegative(*s.TerminationGracePeriodSeconds, path.Child("terminationGracePeriodSeconds"))...)
	}
	if s.UnreadyGracePeriodSeconds != nil {
		errs = append(errs, notNegative(*s.UnreadyGracePeriodSeconds, path.Child("unreadyGracePeriodSeconds"))...)
	}
	return append(errs, notNegative(int64(s.MinStartedSeconds), path.Child("minStartedSeconds"))...)
}

func notNegative(value int64, path *field.Path) field.ErrorList {
	if value >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "must be 0 or more")}
}

// ForbiddenChange returns the part of a change that is forbidden to all users, empty if the change is allowed. The version
// is the one sent.
func ForbiddenChange(now, old *v1beta1.ContainerRecreateRequest, version string) string {
	if !equality.Semantic.DeepEqual(now.Spec, old.Spec) {
		return "spec: is immutable: create another request"
	}
	for _, label := range []string{v1beta1.PodUIDLabel, v1beta1.NodeNameLabel} {
		if now.Labels[label] != old.Labels[label] {
			return fmt.Sprintf("metadata.labels[%s]: is immutable", label)
		}
	}
	// In v1alpha1 the grace is an annotation, which an update could change.
	before, after := graceOf(old), graceOf(now)
	if version != v1beta1.GroupVersion.Version && before != nil && (after == nil || !after.LastTransitionTime.Equal(&before.LastTransitionTime)) {
		return fmt.Sprintf("metadata.annotations[%s]: is immutable", v1beta1.UnreadyAcquiredAnnotation)
	}
	return ""
}

func graceOf(r *v1beta1.ContainerRecreateRequest) *metav1.Condition {
	if !meta.IsStatusConditionTrue(r.Status.Conditions, v1beta1.PreRecreateGrace) {
		return nil
	}
	return meta.FindStatusCondition(r.Status.Conditions, v1beta1.PreRecreateGrace)
}

// Warnings returns warnings about a filled request that will not have the expected effect.
func Warnings(r *v1beta1.ContainerRecreateRequest, pod *corev1.Pod) []string {
	var all []string
	if r.Labels[v1beta1.NodeTypeLabel] == v1beta1.VirtualKubelet {
		all = append(all, fmt.Sprintf("node %q is virtual and has no node agent to recreate containers", r.Labels[v1beta1.NodeNameLabel]))
	}
	if pod == nil || podstate.Condition(pod, contract.SidecarTerminated) != nil {
		return all
	}
	for i := range r.Spec.Containers {
		if c, _, _ := find(pod, r.Spec.Containers[i].Name); c != nil {
			all = append(all, warningsOf(pod, c)...)
		}
	}
	return all
}

// warningsOf returns warnings about the request's limits for one container.
func warningsOf(pod *corev1.Pod, c *corev1.Container) []string {
	var all []string
	policy := pod.Spec.RestartPolicy
	if c.RestartPolicy != nil {
		policy = corev1.RestartPolicy(*c.RestartPolicy)
	}
	switch policy {
	case corev1.RestartPolicyNever:
		all = append(all, fmt.Sprintf("container %q will be stopped and not started again: its restart policy is Never", c.Name))
	case corev1.RestartPolicyOnFailure:
		all = append(all, fmt.Sprintf("container %q stays stopped if it ends with code 0: its restart policy is OnFailure, and a Job counts that as success", c.Name))
	default: // it starts again
	}
	if c.Lifecycle != nil && c.Lifecycle.PreStop != nil && c.Lifecycle.PreStop.HTTPGet != nil && prestop.IsLoopback(c.Lifecycle.PreStop.HTTPGet.Host) {
		all = append(all, fmt.Sprintf("container %q will be stopped without its preStop hook: the node agent cannot reach host %q, "+
			"which is the node itself", c.Name, c.Lifecycle.PreStop.HTTPGet.Host))
	}
	return all
}
