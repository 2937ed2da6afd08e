package eligibility

import (
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Verdict says what a node is to a template.
type Verdict struct {
	// ShouldRun is true if the node gets a pod.
	ShouldRun bool
	// ShouldContinue is true if a pod that is there stays. It is, whenever ShouldRun is.
	ShouldContinue bool
}

// Template is a pod template as far as it chooses nodes. It is safe for concurrent use.
type Template struct {
	nodeName    string
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
}

// Compile prepares a template, which it does not keep.
func Compile(t *corev1.PodTemplateSpec) *Template {
	spec := t.Spec.DeepCopy()
	return &Template{
		nodeName:    spec.NodeName,
		affinity:    nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec}),
		tolerations: WithDefaults(spec.Tolerations, spec.HostNetwork),
	}
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
	if !t.repels(node, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute) {
		return Verdict{ShouldRun: true, ShouldContinue: true}
	}
	return Verdict{ShouldContinue: !t.repels(node, corev1.TaintEffectNoExecute)}
}

// repels reports whether the node has a taint of one of the effects that is not tolerated.
func (t *Template) repels(node *corev1.Node, effects ...corev1.TaintEffect) bool {
	if len(node.Spec.Taints) == 0 {
		return false
	}
	_, untolerated := scheduling.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, t.tolerations, func(taint *corev1.Taint) bool {
		return slices.Contains(effects, taint.Effect)
	}, true) // a server that does not know comparisons takes no template with them
	return untolerated
}
