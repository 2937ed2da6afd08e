package forecast

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// places are the nodes of the simulated cluster. The nodes decide how many pods a DaemonSet has: if they are unknown, the nodes of
// its pods take their place, with the labels that its selector of nodes wants.
func (s *Scene) places() []*corev1.Node {
	if len(s.Nodes) > 0 || !s.isOnEachNode() {
		return s.Nodes
	}
	selector, _, _ := unstructured.NestedStringMap(s.Set.Object, "spec", "template", "spec", "nodeSelector")
	var all []*corev1.Node
	seen := map[string]bool{}
	for _, pod := range s.Pods {
		name := pod.Spec.NodeName
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			UID:    types.UID(name),
			Labels: map[string]string{corev1.LabelHostname: name},
		}}
		maps.Copy(node.Labels, selector)
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		all = append(all, node)
	}
	return all
}

// isOnEachNode reports whether the nodes decide how many pods the workload has.
func (s *Scene) isOnEachNode() bool { return s.Kind.Name == "DaemonSet" }

// withoutNodes is the consequence for the forecast if the nodes are unknown.
func (s *Scene) withoutNodes() string {
	if s.isOnEachNode() {
		return "the nodes of its pods are taken to be all"
	}
	return "each pod is taken to find a node"
}
