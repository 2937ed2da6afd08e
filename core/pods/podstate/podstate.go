package podstate

import (
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
)

// State has the facts of one pod that the rules need.
type State struct {
	// Pod is the pod itself, read-only.
	Pod *corev1.Pod
	// Revision is the short hash of the pod's revision, empty when the pod has no revision label.
	Revision string
	// Lifecycle is the pod's lifecycle state; a pod without the label is Normal.
	Lifecycle string
	// Assigned is true if the pod has a node.
	Assigned bool
	// Terminating is true if the pod's deletion has begun.
	Terminating bool
	// Active pods are neither terminating nor in phase Succeeded or Failed.
	Active bool
	// Ready is true if the pod runs, its condition Ready is True and no in-place update holds it out of service.
	Ready bool
	// ReadySince is the last change of condition Ready; zero when unknown.
	ReadySince time.Time
	// Available is true if the pod has been ready for minReadySeconds and its lifecycle state is Normal.
	Available bool
	// AvailableIn is the time until a ready pod has been ready for minReadySeconds; 0 when time alone
	// does not make it available.
	AvailableIn time.Duration
	// Restarts is the largest restart count of the pod's containers.
	Restarts int32
	// DeletionCost is the value of controller.kubernetes.io/pod-deletion-cost, 0 when absent or malformed.
	DeletionCost int32
	// SpecifiedDelete is true if the pod carries apps.kruise.io/specified-delete.
	SpecifiedDelete bool
}

// IsActive reports whether the pod is neither terminating nor finished.
func IsActive(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && !IsFinished(pod) }

// IsFinished reports whether the pod is in phase Succeeded or Failed: it runs no container again.
func IsFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Of returns the state of the pod at the time now for a workload with minReadySeconds.
func Of(pod *corev1.Pod, now time.Time, minReadySeconds int32) State {
	s := State{
		Pod:          pod,
		Revision:     ShortHash(pod.Labels[contract.RevisionLabel]),
		Lifecycle:    pod.Labels[contract.LifecycleStateLabel],
		Assigned:     pod.Spec.NodeName != "",
		Terminating:  pod.DeletionTimestamp != nil,
		DeletionCost: deletionCost(pod),
	}
	if s.Lifecycle == "" {
		s.Lifecycle = contract.LifecycleNormal
	}
	_, s.SpecifiedDelete = pod.Labels[contract.SpecifiedDeleteLabel]
	s.Active = IsActive(pod)
	for i := range pod.Status.ContainerStatuses {
		s.Restarts = max(s.Restarts, pod.Status.ContainerStatuses[i].RestartCount)
	}
	s.setReadiness(now, time.Duration(minReadySeconds)*time.Second)
	return s
}

func (s *State) setReadiness(now time.Time, minReady time.Duration) {
	ready := Condition(s.Pod, corev1.PodReady)
	if ready == nil {
		return
	}
	s.ReadySince = ready.LastTransitionTime.Time
	s.Ready = s.Pod.Status.Phase == corev1.PodRunning && ready.Status == corev1.ConditionTrue && !HeldByUpdate(s.Pod)
	if !s.Ready || s.Lifecycle != contract.LifecycleNormal {
		return
	}
	switch {
	case minReady <= 0:
		s.Available = true
	case s.ReadySince.IsZero():
		s.AvailableIn = minReady
	default:
		s.AvailableIn = max(s.ReadySince.Add(minReady).Sub(now), 0)
		s.Available = s.AvailableIn == 0
	}
}

// Condition is the pod's condition of the type, or nil.
func Condition(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == t {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// HasReadinessGate reports whether the pod has the readiness gate.
func HasReadinessGate(pod *corev1.Pod, t corev1.PodConditionType) bool {
	for _, g := range pod.Spec.ReadinessGates {
		if g.ConditionType == t {
			return true
		}
	}
	return false
}

// HeldByUpdate reports whether condition InPlaceUpdateReady is present and not True.
func HeldByUpdate(pod *corev1.Pod) bool {
	c := Condition(pod, contract.InPlaceUpdateReady)
	return c != nil && c.Status != corev1.ConditionTrue
}

// ShortHash is the text after the last "-" of a revision's name or label. Two revisions are the
// same when their short hashes are equal and not empty.
func ShortHash(revision string) string {
	return revision[strings.LastIndexByte(revision, '-')+1:]
}

// deletionCost follows the rule of the ReplicaSet controller: no leading "+", no leading zeros.
func deletionCost(pod *corev1.Pod) int32 {
	text, ok := pod.Annotations[contract.PodDeletionCostAnnotation]
	if !ok {
		return 0
	}
	cost, err := strconv.ParseInt(text, 10, 32)
	if err != nil || strconv.FormatInt(cost, 10) != text {
		return 0
	}
	return int32(cost)
}

// CountAvailable counts the active pods that are available.
func CountAvailable(pods []*corev1.Pod, now time.Time, minReadySeconds int32) int {
	n := 0
	for _, o := range pods {
		if s := Of(o, now, minReadySeconds); s.Active && s.Available {
			n++
		}
	}
	return n
}

// CountReady returns how many of n pods are ready and at the update revision.
func CountReady(n int, at func(i int) (pod *State, updated bool)) int32 {
	count := int32(0)
	for i := range n {
		if pod, updated := at(i); updated && pod.Ready {
			count++
		}
	}
	return count
}
