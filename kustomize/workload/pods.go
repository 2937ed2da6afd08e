package workload

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Labels and conditions that the operators write on pods.
const (
	revisionLabel  = "controller-revision-hash"
	lifecycleLabel = "lifecycle.apps.kruise.io/state"
	inPlaceReady   = corev1.PodConditionType("InPlaceUpdateReady")
)

// States of label lifecycle.apps.kruise.io/state in which a hook holds the pod.
const (
	PreparingNormal = "PreparingNormal"
	PreparingUpdate = "PreparingUpdate"
	Updated         = "Updated"
	PreparingDelete = "PreparingDelete"
)

// State is the present state of a pod.
type State string

// All states, the best one first.
const (
	// Ready pods serve.
	Ready State = "ready"
	// Starting pods do not serve yet.
	Starting State = "starting"
	// Updating pods are changed in place, or are held by a hook.
	Updating State = "updating"
	// Ending pods are being deleted, or have ended.
	Ending State = "terminating"
	// InTrouble pods do not get ready without help.
	InTrouble State = "failing"
)

// States returns all states, in the order in which they are shown.
func States() []State { return []State{Ready, Starting, Updating, Ending, InTrouble} }

// RevisionOf is the revision that a pod is of, a name or a hash.
func RevisionOf(pod *corev1.Pod) string { return pod.Labels[revisionLabel] }

// LifecycleOf is the lifecycle state of a pod; empty means Normal.
func LifecycleOf(pod *corev1.Pod) string { return pod.Labels[lifecycleLabel] }

// StateOf returns the state of a pod.
func StateOf(pod *corev1.Pod) State {
	lifecycle := LifecycleOf(pod)
	switch {
	case pod.DeletionTimestamp != nil, lifecycle == PreparingDelete,
		pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return Ending
	case TroubleOf(pod) != nil:
		return InTrouble
	case lifecycle == PreparingUpdate, lifecycle == "Updating", lifecycle == Updated, isFalse(pod, inPlaceReady):
		return Updating
	case IsReady(pod):
		return Ready
	}
	return Starting
}

// IsReady reports whether the pod has condition Ready.
func IsReady(pod *corev1.Pod) bool {
	c := PodCondition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// PodCondition returns the pod's condition of the type, or nil.
func PodCondition(pod *corev1.Pod, name corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == name {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func isFalse(pod *corev1.Pod, name corev1.PodConditionType) bool {
	c := PodCondition(pod, name)
	return c != nil && c.Status == corev1.ConditionFalse
}

// Trouble is the reason why a pod does not get ready, as the scheduler or the kubelet reports it.
type Trouble struct {
	// Reason is theirs, such as ErrImagePull; Message may be empty.
	Reason, Message string
	// Container is empty where the whole pod is concerned. Image is the container's.
	Container, Image string
}

// TroubleOf returns the trouble of a pod, or nil. A pod that merely starts has none.
func TroubleOf(pod *corev1.Pod) *Trouble {
	if c := PodCondition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return &Trouble{Reason: c.Reason, Message: c.Message}
	}
	if IsReady(pod) {
		return nil
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if trouble := containerTrouble(&s); trouble != nil {
			return trouble
		}
	}
	return nil
}

func containerTrouble(s *corev1.ContainerStatus) *Trouble {
	if waiting := s.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "", "ContainerCreating", "PodInitializing":
			return nil
		}
		return &Trouble{
			Reason:    waiting.Reason,
			Message:   waiting.Message,
			Container: s.Name,
			Image:     s.Image,
		}
	}
	return nil
}

// SortPods sorts pods as people count them: web-2 before web-10.
func SortPods(pods []*corev1.Pod) {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		baseA, ordinalA := ordinal(a.Name)
		baseB, ordinalB := ordinal(b.Name)
		return cmp.Or(cmp.Compare(baseA, baseB), cmp.Compare(ordinalA, ordinalB), cmp.Compare(a.Name, b.Name))
	})
}

func ordinal(name string) (base string, number int) {
	dash := strings.LastIndex(name, "-")
	number, err := strconv.Atoi(name[dash+1:])
	if err != nil {
		return name, 0
	}
	return name[:dash+1], number
}
