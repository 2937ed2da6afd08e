package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// mostNamed is how many pods a sentence names.
const mostNamed = 3

// cause groups pods: pods with the same cause are shown together.
type cause struct {
	Finding
	pods []*corev1.Pod
}

// group puts pods with equal causes together, in the order of the first of each. A nil cause is none. Its Why has %s
// where the pods are named.
func group(pods []*corev1.Pod, of func(*corev1.Pod) *Finding) []Finding {
	var causes []*cause
	for _, pod := range pods {
		f := of(pod)
		if f == nil {
			continue
		}
		i := slices.IndexFunc(causes, func(c *cause) bool { return c.Why == f.Why && c.Help == f.Help })
		if i < 0 {
			i = len(causes)
			causes = append(causes, &cause{Finding: *f})
		}
		causes[i].pods = append(causes[i].pods, pod)
	}
	all := make([]Finding, 0, len(causes))
	for _, c := range causes {
		names := make([]string, 0, len(c.pods))
		for _, pod := range c.pods {
			names = append(names, pod.Name)
			c.Objects = append(c.Objects, "pod/"+pod.Name)
		}
		c.Why = strings.Replace(c.Why, "%s", podNames(names), 1)
		all = append(all, c.Finding)
	}
	return all
}

func podNames(names []string) string {
	switch n := len(names); {
	case n == 1:
		return "Pod " + names[0]
	case n > mostNamed:
		return fmt.Sprintf("%d pods (%s and others)", n, strings.Join(names[:mostNamed], ", "))
	default:
		return fmt.Sprintf("%d pods (%s)", n, strings.Join(names, ", "))
	}
}

// troubled finds pods that do not get ready without help, by the reports of the scheduler and the kubelet.
func troubled(w World) []Finding {
	return group(w.Pods, func(pod *corev1.Pod) *Finding {
		t := workload.TroubleOf(pod)
		if t == nil || pod.DeletionTimestamp != nil {
			return nil
		}
		f := explainTrouble(w.Set, t)
		return &f
	})
}

func explainTrouble(s *workload.Set, t *workload.Trouble) Finding {
	undo := "flotilla rollout undo " + s.String()
	switch t.Reason {
	case "Unschedulable":
		return Finding{
			Why:  "%s: no node fits. The scheduler reports: " + sentence(t.Message),
			Help: "Free resources or add nodes, or change the requests, affinity, tolerations or PVCs of the template.",
		}
	case "SchedulingGated":
		return Finding{Why: "%s: it waits for its scheduling gates (spec.schedulingGates).", Help: "Check the controller that removes these gates."}
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable":
		f := Finding{
			Why:  fmt.Sprintf("%%s: the image %s of container %s cannot be pulled.", t.Image, t.Container),
			Help: "Correct the image, its pull policy or the pull secrets, or roll back: " + undo,
		}
		if t.Reason == "InvalidImageName" || t.Reason == "ErrImageNeverPull" {
			f.Why = fmt.Sprintf("%%s: the image %s of container %s is not pulled (%s).", t.Image, t.Container, t.Reason)
		}
		return f
	case "CrashLoopBackOff":
		return Finding{
			Why:  fmt.Sprintf("%%s: container %s exits repeatedly.", t.Container),
			Help: fmt.Sprintf("Find the cause: kubectl logs --previous -c %s POD. Correct the template, or roll back: %s", t.Container, undo),
		}
	case "CreateContainerConfigError":
		return Finding{
			Why:  fmt.Sprintf("%%s: container %s cannot be configured: %s", t.Container, sentence(t.Message)),
			Help: "Create the missing ConfigMap, Secret or key, or correct the template.",
		}
	}
	return Finding{
		Why:  fmt.Sprintf("%%s: %s reports %s: %s", cmp.Or(containerName(t.Container), "the scheduler"), t.Reason, cmp.Or(sentence(t.Message), "no message.")),
		Help: "For details: kubectl describe pod",
	}
}

func containerName(name string) string {
	if name == "" {
		return ""
	}
	return "the kubelet, for container " + name + ","
}

// held finds pods that hooks hold.
func held(w World) []Finding {
	return group(w.Pods, func(pod *corev1.Pod) *Finding {
		var hook *workload.Hook
		name, until := "", "is removed"
		switch workload.LifecycleOf(pod) {
		case workload.PreparingDelete:
			hook, name = w.Set.Lifecycle.PreDelete, "preDelete"
		case workload.PreparingUpdate:
			hook, name = w.Set.Lifecycle.InPlaceUpdate, "inPlaceUpdate"
		case workload.Updated:
			hook = w.Set.Lifecycle.InPlaceUpdate
			name = "inPlaceUpdate"
			until = "is set again"
		case workload.PreparingNormal:
			hook = w.Set.Lifecycle.PreNormal
			name = "preNormal"
			until = "is set"
		}
		if hook == nil {
			return nil
		}
		return &Finding{
			Why:  fmt.Sprintf("%%s: hook %s waits until %s %s.", name, hook, until),
			Help: "Check the controller that answers the hook.",
		}
	})
}

// resizing finds pods that do not get their resources from their node.
func resizing(w World) []Finding {
	return group(w.Pods, func(pod *corev1.Pod) *Finding {
		c := workload.PodCondition(pod, corev1.PodResizePending)
		if failed := workload.PodCondition(pod, corev1.PodResizeInProgress); failed != nil && failed.Reason == corev1.PodReasonError {
			c = failed
		}
		if c == nil || c.Status != corev1.ConditionTrue {
			return nil
		}
		return &Finding{
			Why:  fmt.Sprintf("%%s: node %s has not granted its new resources (%s): %s", pod.Spec.NodeName, c.Reason, cmp.Or(sentence(c.Message), "no message.")),
			Help: helpFor("Resize"),
		}
	})
}

// patience is how long a pod may end beyond its grace period before it is shown.
const patience = 30 * time.Second

// ending finds pods that should have gone by now.
func ending(w World) []Finding {
	return group(w.Pods, func(pod *corev1.Pod) *Finding {
		if pod.DeletionTimestamp == nil {
			return nil
		}
		if len(pod.Finalizers) > 0 {
			return &Finding{
				Why:  fmt.Sprintf("%%s: it is being deleted and waits for finalizer %s.", strings.Join(pod.Finalizers, ", ")),
				Help: "Check the controller that removes the finalizer.",
			}
		}
		if w.Now.Before(pod.DeletionTimestamp.Add(patience)) {
			return nil
		}
		return &Finding{
			Why:  fmt.Sprintf("%%s: its grace period is over, and it still exists on node %s.", pod.Spec.NodeName),
			Help: "Check the node. If it is gone forever, delete the pod with --force.",
		}
	})
}

// onLostNodes finds pods on nodes that are not Ready.
func onLostNodes(w World) []Finding {
	return group(w.Pods, func(pod *corev1.Pod) *Finding {
		lost := w.lost(pod)
		if lost == nil || pod.DeletionTimestamp != nil {
			return nil
		}
		return &Finding{
			Why:  fmt.Sprintf("%%s: node %s is not Ready: %s", pod.Spec.NodeName, cmp.Or(sentence(lost.Message), lost.Reason)),
			Help: "Check the node: kubectl describe node " + pod.Spec.NodeName,
		}
	})
}

// lost is the condition that keeps the pod's node from being Ready, or nil.
func (w World) lost(pod *corev1.Pod) *corev1.NodeCondition {
	node := w.Nodes[pod.Spec.NodeName]
	if node == nil {
		return nil
	}
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// notReady finds pods that run and are not ready, with the reports of their gates and their probes.
func notReady(w World) []Finding {
	return group(w.Pods, func(pod *corev1.Pod) *Finding {
		if workload.StateOf(pod) != workload.Starting || pod.Status.Phase != corev1.PodRunning || w.lost(pod) != nil {
			return nil
		}
		if gate := closedGate(pod); gate != "" {
			return &Finding{
				Why:  fmt.Sprintf("%%s: readiness gate %s is not True.", gate),
				Help: "Check the controller that sets this condition of the pod.",
			}
		}
		for i := range w.Warnings {
			if e := &w.Warnings[i]; e.InvolvedObject.Name == pod.Name && e.Reason == "Unhealthy" {
				return &Finding{Why: "%s: a probe fails: " + sentence(e.Message), Help: "Find the cause: kubectl logs. Correct the program or the probe."}
			}
		}
		return &Finding{Why: "%s: it runs, but is not ready yet.", Help: "If this lasts, check its readiness probe: kubectl describe pod"}
	})
}

// closedGate is a readiness gate that keeps a pod with ready containers from being ready; empty if no gate does.
func closedGate(pod *corev1.Pod) corev1.PodConditionType {
	if c := workload.PodCondition(pod, corev1.ContainersReady); c == nil || c.Status != corev1.ConditionTrue {
		return ""
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if c := workload.PodCondition(pod, gate.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			return gate.ConditionType
		}
	}
	return ""
}
