package simnodes

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// status returns what the node reports of the pod now: conditions of others stay, the node's own are computed from the
// containers and from the readiness gates.
func (r *podRun) status(pod *corev1.Pod, now time.Time, hostIP string, image func(string) Image) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	phase := r.phase(pod)
	over := phase == corev1.PodSucceeded || phase == corev1.PodFailed
	if over {
		r.end(now)
	}
	s.Phase, s.ObservedGeneration = phase, pod.Generation
	s.HostIP = hostIP
	s.HostIPs = []corev1.HostIP{{IP: hostIP}}
	s.PodIP = r.ip
	s.PodIPs = []corev1.PodIP{{IP: r.ip}}
	started := wholeSeconds(r.started)
	s.StartTime = &started
	s.InitContainerStatuses = containerStatuses(pod.Spec.InitContainers, r.inits, now, image)
	for i := range r.inits {
		s.InitContainerStatuses[i].Ready = s.InitContainerStatuses[i].Ready ||
			r.inits[i].state == exited && initDone(&r.inits[i], &pod.Spec.InitContainers[i])
	}
	s.ContainerStatuses = containerStatuses(pod.Spec.Containers, r.mains, now, image)
	r.setConditions(pod, s, over, now)
	return s
}

func containerStatuses(specs []corev1.Container, list []container, now time.Time, image func(string) Image) []corev1.ContainerStatus {
	out := make([]corev1.ContainerStatus, len(list))
	for i := range list {
		out[i] = containerStatus(&specs[i], &list[i], now, image)
	}
	return out
}

func containerStatus(spec *corev1.Container, c *container, now time.Time, image func(string) Image) corev1.ContainerStatus {
	started := c.state == running
	s := corev1.ContainerStatus{
		Name:         spec.Name,
		Image:        spec.Image,
		RestartCount: c.restart,
		Started:      &started,
	}
	if c.ranImage != "" {
		s.ContainerID = c.id
		s.Image = c.ranImage
		s.ImageID = imageIDOf(c.ranImage, image)
	}
	last := corev1.ContainerState{Terminated: c.ended}
	switch {
	case c.state == running:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: wholeSeconds(c.started)}
		s.LastTerminationState = last
		s.Resources = c.resources.DeepCopy()
		s.AllocatedResources = c.resources.Requests.DeepCopy()
		s.Ready = c.ready(now, image(c.ranImage))
	case c.state == exited:
		s.State = last
	case c.reason == reasonCreating && c.ended != nil: // ended for a change, the next not started yet
		s.State = last
	default:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: c.reason}
		s.LastTerminationState = last
	}
	return s
}

func imageIDOf(name string, image func(string) Image) string {
	if same := image(name).SameAs; same != "" {
		name = same
	}
	return ImageID(name)
}

func (r *podRun) setConditions(pod *corev1.Pod, s *corev1.PodStatus, over bool, now time.Time) {
	set := func(kind corev1.PodConditionType, ok bool, reason, message string) {
		setCondition(s, corev1.PodCondition{Type: kind, Status: conditionStatus(ok), Reason: reason,
			Message: message, ObservedGeneration: pod.Generation}, now)
	}
	set(corev1.PodReadyToStartContainers, !over, "", "")
	set(corev1.PodScheduled, true, "", "")
	if over && s.Phase == corev1.PodSucceeded {
		set(corev1.PodInitialized, true, "PodCompleted", "")
		set(corev1.ContainersReady, false, "PodCompleted", "")
		set(corev1.PodReady, false, "PodCompleted", "")
		return
	}
	initialized := r.initialized(pod)
	set(corev1.PodInitialized, initialized, reasonUnless(initialized, "ContainersNotInitialized"), "")
	unready := unreadyContainers(pod, s)
	reason, message := "", ""
	if len(unready) > 0 || !initialized || over {
		reason = "ContainersNotReady"
		message = fmt.Sprintf("containers with unready status: [%s]", strings.Join(unready, " "))
	}
	set(corev1.ContainersReady, reason == "", reason, message)
	if gates := missingReadinessGates(pod, s); reason == "" && len(gates) > 0 {
		reason = "ReadinessGatesNotReady"
		message = strings.Join(gates, ", ")
	}
	set(corev1.PodReady, reason == "", reason, message)
	r.setResizeConditions(pod, s, now)
}

// setResizeConditions reports changes of resources that are under way or refused.
func (r *podRun) setResizeConditions(pod *corev1.Pod, s *corev1.PodStatus, now time.Time) {
	refused, underWay := "", false
	for i := range r.mains {
		if r.mains[i].refused != "" {
			refused = r.mains[i].refused
		}
		underWay = underWay || !r.mains[i].resizeAt.IsZero()
	}
	toggle := func(kind corev1.PodConditionType, on bool, reason string) {
		if !on {
			removeCondition(s, kind)
			return
		}
		setCondition(s, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: reason,
			ObservedGeneration: pod.Generation}, now)
	}
	toggle(corev1.PodResizePending, refused != "", refused)
	toggle(corev1.PodResizeInProgress, underWay, "")
}

// unreadyContainers names the containers and sidecars that are not ready.
func unreadyContainers(pod *corev1.Pod, s *corev1.PodStatus) []string {
	var names []string
	for i := range s.InitContainerStatuses {
		if podspec.IsSidecar(&pod.Spec.InitContainers[i]) && !s.InitContainerStatuses[i].Ready {
			names = append(names, s.InitContainerStatuses[i].Name)
		}
	}
	for i := range s.ContainerStatuses {
		if !s.ContainerStatuses[i].Ready {
			names = append(names, s.ContainerStatuses[i].Name)
		}
	}
	return names
}

// missingReadinessGates returns a message for each readiness gate whose condition is not True.
func missingReadinessGates(pod *corev1.Pod, s *corev1.PodStatus) []string {
	var open []string
	for _, gate := range pod.Spec.ReadinessGates {
		c := findCondition(s, gate.ConditionType)
		switch {
		case c == nil:
			open = append(open, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", gate.ConditionType))
		case c.Status != corev1.ConditionTrue:
			open = append(open, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", gate.ConditionType, c.Status))
		}
	}
	return open
}

func setCondition(s *corev1.PodStatus, c corev1.PodCondition, now time.Time) {
	old := findCondition(s, c.Type)
	if old == nil {
		c.LastTransitionTime = wholeSeconds(now)
		s.Conditions = append(s.Conditions, c)
		return
	}
	c.LastTransitionTime = old.LastTransitionTime
	if old.Status != c.Status {
		c.LastTransitionTime = wholeSeconds(now)
	}
	*old = c
}

func findCondition(s *corev1.PodStatus, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

func removeCondition(s *corev1.PodStatus, kind corev1.PodConditionType) {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			s.Conditions = append(s.Conditions[:i], s.Conditions[i+1:]...)
			return
		}
	}
}

func conditionStatus(ok bool) corev1.ConditionStatus {
	if ok {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

func reasonUnless(ok bool, reason string) string {
	if ok {
		return ""
	}
	return reason
}

// wholeSeconds returns t as the API server keeps it.
func wholeSeconds(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }
