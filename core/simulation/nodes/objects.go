package nodes

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// AddNodes adds nodes as objects, ready and named node-0 and so on. From then on pods are scheduled only to nodes that
// exist, and pods of nodes that do not are collected. Without it nodes are names.
func (w *World) AddNodes(n int) {
	for i := range n {
		w.AddNode(fmt.Sprintf("node-%d", i))
	}
}

// AddNode adds a ready node of the name with the label node, whose value is the name. Pods that wait for it are
// scheduled.
func (w *World) AddNode(name string) {
	delete(w.silent, name)
	w.Commit(cluster.Event{
		Type:  cluster.Added,
		Actor: cluster.CloudActor,
		Object: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name:              name,
				UID:               w.NewUID(),
				CreationTimestamp: w.Stamp(),
				Labels:            map[string]string{"node": name},
			},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
				Type:               corev1.NodeReady,
				Status:             corev1.ConditionTrue,
				LastTransitionTime: w.Stamp(),
			}}},
		},
	})
	for _, pod := range w.Pods() {
		switch pod.Spec.NodeName {
		case "":
			w.After(w.Takes(cluster.Scheduling, time.Second), func() { w.schedule(cluster.KeyOf(pod), pod.UID) })
		case name: // those of a node that had the name before
			w.After(w.Takes(cluster.Noticing, time.Second), func() { w.sync(cluster.KeyOf(pod), pod.UID) })
		}
	}
}

// RemoveNode removes a node. Its pods are collected after a while, unless a node of the name is back by then.
func (w *World) RemoveNode(name string) {
	node := w.node(name)
	if node == nil {
		return
	}
	w.silent[name] = true
	w.Tell(cluster.CloudActor, "removes %s", name)
	w.Commit(cluster.Event{
		Type:   cluster.Deleted,
		Actor:  cluster.CloudActor,
		Object: node.DeepCopy(),
		Old:    node,
	})
	w.After(w.Delay(20*time.Second), func() {
		if w.node(name) != nil {
			return
		}
		for _, pod := range w.Pods() {
			if pod.Spec.NodeName == name {
				w.collectPod(pod)
			}
		}
	})
}

// collectPod deletes a pod without waiting for its kubelet. Finalizers hold it all the same.
func (w *World) collectPod(pod *corev1.Pod) {
	n := *pod
	none, at := int64(0), w.Stamp()
	n.DeletionGracePeriodSeconds, n.DeletionTimestamp = &none, &at
	if cluster.Gone(&n) {
		w.Commit(cluster.Event{
			Type:   cluster.Deleted,
			Actor:  cluster.CollectorActor,
			Object: &n,
			Old:    pod,
		})
		return
	}
	w.Commit(cluster.Event{
		Type:   cluster.Modified,
		Actor:  cluster.CollectorActor,
		Object: &n,
		Old:    pod,
	})
}

// Nodes returns the nodes that exist as objects, in the order of their creation.
func (w *World) Nodes() []*corev1.Node { return cluster.List[*corev1.Node](w.View(nil)) }

func (w *World) node(name string) *corev1.Node {
	return cluster.Get[*corev1.Node](w.View(nil), "", name)
}

// HasNode reports whether the node exists, in a world whose nodes are objects.
func (w *World) HasNode(name string) bool {
	return len(w.Events("Node")) == 0 || w.node(name) != nil
}

// EditNode changes a node, as the actor does.
func (w *World) EditNode(actor, name string, edit func(*corev1.Node)) {
	old := w.node(name)
	if old == nil {
		return
	}
	n := old.DeepCopy()
	edit(n)
	if !cluster.Same(old, n) {
		w.Commit(cluster.Event{
			Type:   cluster.Modified,
			Actor:  actor,
			Object: n,
			Old:    old,
		})
	}
}

// setReady writes the readiness of a node, and the taints that follow from it.
func (w *World) setReady(name string, status corev1.ConditionStatus) {
	w.EditNode(cluster.NodeActor, name, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{
			Type:               corev1.NodeReady,
			Status:             status,
			LastTransitionTime: w.Stamp(),
		}}
		n.Spec.Taints = WithoutTaint(n.Spec.Taints, corev1.TaintNodeUnreachable)
		if status != corev1.ConditionTrue {
			n.Spec.Taints = append(n.Spec.Taints,
				corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
				corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
		}
	})
}

// WithoutTaint returns the taints that have another key.
func WithoutTaint(taints []corev1.Taint, key string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == key })
}
