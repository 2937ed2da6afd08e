package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// userAgent is the name under which requests hold pods not ready, in the message of condition KruisePodReady.
const userAgent = "ContainerRecreateRequest"

// key returns the not-ready key of the request.
func (p *pass) key() string { return p.Request.Namespace + "/" + p.Request.Name }

// hold takes the pod out of service before the first container is stopped, and records since when its kubelet reports it
// not ready. The time begins again if the pod is seen ready before a container is stopped.
func (p *pass) hold() {
	s := p.Request.Spec.Strategy
	if s == nil || s.UnreadyGracePeriodSeconds == nil || p.stopsBegan() {
		return
	}
	grace := metav1.Condition{
		Type:               v1beta1.PreRecreateGrace,
		Status:             metav1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(p.Now),
		Reason:             v1beta1.PreRecreateGrace,
		Message:            v1beta1.PreRecreateGraceMessage,
	}
	if podstate.HasReadinessGate(p.Pod, contract.KruisePodReady) {
		began := meta.IsStatusConditionTrue(p.Request.Status.Conditions, v1beta1.PreRecreateGrace)
		if !began && p.takeOut() {
			return // the time counts once the pod shows it
		}
		gate := podstate.Condition(p.Pod, contract.KruisePodReady)
		if began && (gate == nil || gate.Status == corev1.ConditionTrue) {
			return // another client has ended the hold
		}
		if left := podstate.UnreadyIn(p.Pod, gate, p.Now); left > 0 {
			p.plan.RequeueWithin(left)
			if meta.FindStatusCondition(p.plan.status.Conditions, v1beta1.PreRecreateGrace) == nil {
				return
			}
			grace.Status = metav1.ConditionFalse
			grace.Message = "the kubelet reports the pod ready"
		}
	}
	meta.SetStatusCondition(&p.plan.status.Conditions, grace)
}

// stopsBegan reports whether the agent has gone on to the containers: it has seen the time pass.
func (p *pass) stopsBegan() bool {
	return slices.ContainsFunc(p.Request.Status.ContainerRecreateStates, func(s v1beta1.ContainerRecreateState) bool {
		return s.IsKilled || s.ContainerID != "" || s.Phase != v1beta1.RecreatePending
	})
}

// takeOut holds the pod not ready and reports whether it has to. Who will let go of it is written down first.
func (p *pass) takeOut() bool {
	marked := hasFinalizer(p.Request)
	if !marked {
		finalizers := append(slices.Clone(p.Request.Finalizers), v1beta1.UnreadyAcquiredFinalizer)
		p.patchRequest(stepMark, "UnreadyGrace", "the pod will be set to not ready", map[string]any{"finalizers": anyList(finalizers)})
	}
	c := p.change()
	lifecycle.AddNotReadyKey(c, userAgent, p.key())
	event := &action.Event{Failed: HoldRefused, FailedNote: "Pod " + p.Pod.Name + " could not be set to not ready before its containers are stopped: "}
	p.plan.holding = p.patchPod(c, stepHold, "UnreadyGrace", "the pod is not ready for unreadyGracePeriodSeconds before a container is stopped", event) || !marked
	return p.plan.holding
}

// release gives the pod back, and reports whether it has to. A pod of another UID was never held.
func (p *pass) release() bool {
	if p.pod() == nil {
		return false
	}
	c := p.change()
	lifecycle.RemoveNotReadyKey(c, userAgent, p.key())
	return p.patchPod(c, stepRelease, "Finished", "the request has ended, and the pod may be ready again", nil)
}

func (p *pass) change() *action.PodChange {
	return action.NewPodChange(p.Pod, metav1.NewTime(p.Now))
}

func (p *pass) patchPod(c *action.PodChange, step, reason, message string, event *action.Event) bool {
	if c.Empty() {
		return false
	}
	p.plan.Add(action.Step{Name: step, Actions: []action.Action{{
		Verb:        action.PatchStatus,
		Object:      p.Pod,
		Independent: true,
		Patches:     c.Patches(),
		Reason:      reason,
		Message:     message,
		Event:       event,
	}}})
	return true
}

// observe records which of the listed containers run again, and whether they are ready. New runs are
// recognized by ID and count, not by the node's time.
func (p *pass) observe() {
	var snapshot []v1beta1.ContainerStatusSnapshot
	for i := range p.Request.Spec.Containers {
		c := &p.Request.Spec.Containers[i]
		status := statusOf(p.Pod, c.Name)
		if status == nil || status.State.Running == nil || c.StatusContext == nil {
			continue
		}
		if status.ContainerID != c.StatusContext.ContainerID || status.RestartCount > c.StatusContext.RestartCount {
			snapshot = append(snapshot, v1beta1.ContainerStatusSnapshot{
				Name:         c.Name,
				Ready:        status.Ready,
				RestartCount: status.RestartCount,
				ContainerID:  status.ContainerID,
			})
		}
	}
	if len(snapshot) > 0 {
		p.plan.status.ContainerStatusSnapshot = snapshot
	}
}

// over reports whether the pod starts no container any more.
func over(pod *corev1.Pod, r *v1beta1.ContainerRecreateRequest) bool {
	if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
		return false
	}
	if podstate.Condition(pod, contract.SidecarTerminated) == nil {
		return true
	}
	return !slices.ContainsFunc(r.Spec.Containers, func(c v1beta1.ContainerToRecreate) bool {
		status := statusOf(pod, c.Name)
		return status != nil && status.State.Terminated == nil
	})
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, list := range [...][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}

func anyList(texts []string) []any {
	list := make([]any, 0, len(texts))
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}
