package eligibility

import (
	"github.com/go-logr/logr" //nolint:depguard // the helper that compares taints asks for a logger, and gets none
	corev1 "k8s.io/api/core/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Rules are the rules by which nodes are chosen.
type Rules int

// The rules of the kinds that have a pod on every node. Both follow node name, node selector and required node affinity.
const (
	// ForDaemons are the rules of the built-in DaemonSet: its pods tolerate that a node is cordoned, not ready or short
	// of something, and go from a node with a NoExecute taint that they do not tolerate.
	ForDaemons Rules = iota
	// ForJobs are the rules of the default scheduler, for a pod that has a node for itself: it has the tolerations of
	// the template, and its requests fit into the allocatable resources. A pod that has begun stays, unless a user's
	// NoExecute taint drives it away: that a node is not ready is left to the cluster's own eviction, which comes
	// later.
	ForJobs
)

// Verdict is the result of the rules for a template and a node.
type Verdict struct {
	// ShouldRun is true if the node gets a pod.
	ShouldRun bool
	// ShouldContinue is true if a pod that is there stays. It is, whenever ShouldRun is.
	ShouldContinue bool
}

// Template is a pod template as far as it chooses nodes. It is safe for concurrent use.
type Template struct {
	rules       Rules
	nodeName    string
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
	requests    corev1.ResourceList // only of jobs
}

// Compile prepares a template, which it does not keep.
func Compile(t *corev1.PodTemplateSpec, rules Rules) *Template {
	pod := &corev1.Pod{Spec: *t.Spec.DeepCopy()}
	compiled := &Template{
		rules:       rules,
		nodeName:    pod.Spec.NodeName,
		affinity:    nodeaffinity.GetRequiredNodeAffinity(pod),
		tolerations: pod.Spec.Tolerations,
	}
	switch rules {
	case ForDaemons:
		compiled.tolerations = WithDefaults(pod.Spec.Tolerations, pod.Spec.HostNetwork)
	case ForJobs:
		compiled.requests = requestsOf(pod)
	}
	return compiled
}

// Of is the verdict on a node. An affinity that cannot be read matches no node.
//
//	An untolerated NoSchedule taint: no pod is created, and one that is there stays.
//	An untolerated NoExecute taint, or a label that matches no longer: it goes.
func (t *Template) Of(node *corev1.Node) Verdict {
	if t.nodeName != "" && t.nodeName != node.Name {
		return Verdict{}
	}
	if matches, err := t.affinity.Match(node); err != nil || !matches {
		return Verdict{}
	}
	if !t.repels(node, starting) && (t.rules == ForDaemons || t.schedulable(node)) {
		return Verdict{ShouldRun: true, ShouldContinue: true}
	}
	return Verdict{ShouldContinue: !t.repels(node, t.running)}
}

// starting selects the taints that keep a pod from starting.
func starting(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

// running selects the taints that drive away a pod that runs.
func (t *Template) running(taint *corev1.Taint) bool {
	waits := t.rules == ForJobs && (taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable)
	return taint.Effect == corev1.TaintEffectNoExecute && !waits
}

// repels reports whether the node has a taint among the selected ones that is not tolerated.
func (t *Template) repels(node *corev1.Node, selected func(*corev1.Taint) bool) bool {
	return untolerated(node.Spec.Taints, t.tolerations, selected)
}

// Repels reports whether the node has a taint that keeps a pod with these tolerations from starting there.
func Repels(node *corev1.Node, tolerations []corev1.Toleration) bool {
	return untolerated(node.Spec.Taints, tolerations, starting)
}

func untolerated(taints []corev1.Taint, tolerations []corev1.Toleration, selected func(*corev1.Taint) bool) bool {
	if len(taints) == 0 {
		return false
	}
	_, found := scheduling.FindMatchingUntoleratedTaint(logr.Discard(), taints, tolerations, selected,
		true) // a server that does not know comparisons takes no template with them
	return found
}

// schedulable reports whether the node takes new pods, and has enough resources for the pod when it runs no others.
func (t *Template) schedulable(node *corev1.Node) bool {
	if node.Spec.Unschedulable {
		cordon := []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
		if untolerated(cordon, t.tolerations, starting) {
			return false
		}
	}
	allocatable := node.Status.Allocatable
	if allocatable.Pods().Value() < 1 {
		return false
	}
	for name, amount := range t.requests {
		if available := allocatable[name]; amount.Cmp(available) > 0 {
			return false
		}
	}
	return true
}
