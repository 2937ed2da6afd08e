package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// marks are the settings in the environment of a container for its end.
type marks struct {
	stopped bool   // on real nodes
	image   string // that replaces its own on virtual nodes
	ignored bool   // its exit code does not decide the pod's phase
}

func (m marks) sidecar() bool { return m.stopped || m.image != "" }

// marksOf reads the marks of a container. Of several variables of a name the last one counts, as for the kubelet.
func marksOf(c *corev1.Container) (m marks) {
	for i := range c.Env {
		value := c.Env[i].Value
		switch c.Env[i].Name {
		case v1beta1.TerminateSidecarEnv:
			m.stopped = strings.EqualFold(value, "true")
		case v1beta1.TerminateSidecarImageEnv:
			m.image = value
		case v1beta1.IgnoreSidecarExitCodeEnv:
			m.ignored = strings.EqualFold(value, "true")
		}
	}
	m.ignored = m.ignored && m.stopped
	return m
}

// HasSidecars reports whether the pod can ever concern this controller: it runs to completion and has sidecars.
func HasSidecars(pod *corev1.Pod) bool {
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return false
	}
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return marksOf(&c).sidecar() })
}

// Due reports whether the main containers of the pod have ended, and something is left to be done about its sidecars.
func Due(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodPending || !HasSidecars(pod) ||
		len(pod.Status.ContainerStatuses) != len(pod.Spec.Containers) || !mainsEnded(pod) {
		return false
	}
	decided := podstate.Condition(pod, contract.SidecarTerminated) != nil
	if decided != final(pod.Status.Phase) {
		return decided // without the condition the kubelet's phase is final; a decided phase is set again
	}
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return marksOf(&c).sidecar() && !ended(pod, &c)
	})
}

// mainsEnded reports whether there are main containers, and all have ended and are not started again.
func mainsEnded(pod *corev1.Pod) bool {
	mains := 0
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if marksOf(c).sidecar() {
			continue
		}
		mains++
		if !ended(pod, c) {
			return false
		}
	}
	return mains > 0
}

// ended reports whether the container has ended and is not started again.
func ended(pod *corev1.Pod, c *corev1.Container) bool {
	s := statusOf(pod, c.Name)
	return isTerminated(s) && (final(pod.Status.Phase) || !restarts(pod, c, s.State.Terminated.ExitCode))
}

// restarts reports whether the kubelet starts a container again that ended with the code: by its own rules, else by its
// own policy, else by the policy of the pod.
func restarts(pod *corev1.Pod, c *corev1.Container, code int32) bool {
	for i := range c.RestartPolicyRules {
		if on := c.RestartPolicyRules[i].ExitCodes; on != nil {
			listed := slices.Contains(on.Values, code)
			if listed == (on.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
				return true // there is no action but to restart
			}
		}
	}
	policy := string(pod.Spec.RestartPolicy)
	if c.RestartPolicy != nil {
		policy = string(*c.RestartPolicy)
	}
	return policy != string(corev1.RestartPolicyNever) && (policy != string(corev1.RestartPolicyOnFailure) || code != 0)
}

// result returns the phase that follows from the main containers alone.
func result(pod *corev1.Pod) corev1.PodPhase {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if !marksOf(c).sidecar() && statusOf(pod, c.Name).State.Terminated.ExitCode != 0 {
			return corev1.PodFailed
		}
	}
	return corev1.PodSucceeded
}

func final(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == container {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

func isTerminated(s *corev1.ContainerStatus) bool { return s != nil && s.State.Terminated != nil }

func isRunning(s *corev1.ContainerStatus) bool {
	return s != nil && s.State.Running != nil && s.ContainerID != ""
}
