package cluster

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Tell adds a line to the story.
func (w *World) Tell(actor, format string, args ...any) {
	at := "t=" + w.now.Sub(w.begin).Truncate(time.Second).String()
	w.story = append(w.story, fmt.Sprintf("%-8s %-9s %s", at, actor, fmt.Sprintf(format, args...)))
}

// Story returns what has happened so far, one line for each action of the operator and each change in the life cycle of
// a pod. The same seed gives the same story.
func (w *World) Story() string { return strings.Join(w.story, "\n") + "\n" }

// Lines returns the number of lines of the story.
func (w *World) Lines() int { return len(w.story) }

// narrate adds changes in the life cycle of a pod that are not made by the operator to the story.
func (w *World) narrate(e Event) {
	pod, ok := e.Object.(*corev1.Pod)
	if !ok {
		return
	}
	old, _ := e.Old.(*corev1.Pod)
	switch {
	case e.Type == Deleted:
		w.Tell(e.Actor, "pod %s is gone", pod.Name)
	case old == nil || e.Actor == OperatorActor:
	case e.Actor == CollectorActor && old.DeletionTimestamp == nil && pod.DeletionTimestamp != nil:
		w.Tell(e.Actor, "pod %s has lost its owner", pod.Name)
	case old.Spec.NodeName != pod.Spec.NodeName:
		w.Tell(e.Actor, "pod %s goes to %s", pod.Name, pod.Spec.NodeName)
	case IsTrue(pod, corev1.PodReady) != IsTrue(old, corev1.PodReady):
		if IsTrue(pod, corev1.PodReady) {
			w.Tell(e.Actor, "pod %s is ready", pod.Name)
		} else {
			w.Tell(e.Actor, "pod %s is not ready", pod.Name)
		}
	case e.Actor == KubeletActor && trouble(pod) != "" && trouble(pod) != trouble(old):
		w.Tell(e.Actor, "pod %s: %s", pod.Name, trouble(pod))
	}
}

// trouble returns a container that waits with its reason, unless it only waits for its creation; empty if there is
// none.
func trouble(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.State.Waiting != nil && s.State.Waiting.Reason != "ContainerCreating" {
			return s.Name + " " + s.State.Waiting.Reason
		}
	}
	return ""
}
