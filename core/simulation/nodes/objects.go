package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CloudActor is who adds and removes nodes, and taints, labels and cordons them.
const CloudActor = "cloud"

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
	w.commit(Event{Type: Added, Actor: CloudActor, Object: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: w.newUID(), CreationTimestamp: w.stamp(), Labels: map[string]string{"node": name}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: w.stamp()},
		}},
	}})
	for _, pod := range w.Pods() {
		switch pod.Spec.NodeName {
		case "":
			w.After(w.delay(time.Second), func() { w.schedule(keyOf(pod), pod.UID) })
		case name: // those of a node that had the name before
			w.After(w.delay(time.Second), func() { w.sync(keyOf(pod), pod.UID) })
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
	w.Tell(CloudActor, "removes %s", name)
	w.commit(Event{Type: Deleted, Actor: CloudActor, Object: node.DeepCopy(), Old: node})
	w.After(w.delay(20*time.Second), func() {
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
	none, at := int64(0), w.stamp()
	n.DeletionGracePeriodSeconds, n.DeletionTimestamp = &none, &at
	if gone(&n) {
		w.commit(Event{Type: Deleted, Actor: CollectorActor, Object: &n, Old: pod})
		return
	}
	w.commit(Event{Type: Modified, Actor: CollectorActor, Object: &n, Old: pod})
}

// Nodes returns the nodes that exist as objects, in the order of their creation.
func (w *World) Nodes() []*corev1.Node { return List[*corev1.Node](w.View(nil)) }

func (w *World) node(name string) *corev1.Node { return Get[*corev1.Node](w.View(nil), "", name) }

// HasNode reports whether the node exists, in a world whose nodes are objects.
func (w *World) HasNode(name string) bool {
	t := w.tables["Node"]
	return t == nil || t.objects[types.NamespacedName{Name: name}] != nil
}

// EditNode changes a node, as the actor does.
func (w *World) EditNode(actor, name string, edit func(*corev1.Node)) {
	old := w.node(name)
	if old == nil {
		return
	}
	n := old.DeepCopy()
	edit(n)
	if !same(old, n) {
		w.commit(Event{Type: Modified, Actor: actor, Object: n, Old: old})
	}
}

// setReady writes the readiness of a node, and the taints that follow from it.
func (w *World) setReady(name string, status corev1.ConditionStatus) {
	w.EditNode(NodeActor, name, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: w.stamp()}}
		n.Spec.Taints = withoutTaint(n.Spec.Taints, corev1.TaintNodeUnreachable)
		if status != corev1.ConditionTrue {
			n.Spec.Taints = append(n.Spec.Taints,
				corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
				corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
		}
	})
}

func withoutTaint(taints []corev1.Taint, key string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == key })
}

// anyNode returns the name of a node at random; empty when there is none.
func (w *World) anyNode(rng *rand.Rand) string {
	nodes := w.Nodes()
	if len(nodes) == 0 {
		return ""
	}
	return nodes[rng.IntN(len(nodes))].Name
}

// TaintsNodes taints a node at random and takes the taint away after the time.
func TaintsNodes(key string, effect corev1.TaintEffect, d time.Duration) Actor {
	return func(w *World, rng *rand.Rand) {
		name := w.anyNode(rng)
		w.Tell(CloudActor, "taints %s %s", name, effect)
		w.EditNode(CloudActor, name, func(n *corev1.Node) {
			n.Spec.Taints = append(withoutTaint(n.Spec.Taints, key), corev1.Taint{Key: key, Effect: effect})
		})
		w.After(d, func() {
			w.EditNode(CloudActor, name, func(n *corev1.Node) { n.Spec.Taints = withoutTaint(n.Spec.Taints, key) })
		})
	}
}

// CordonsNodes cordons a node at random and takes that back after the time.
func CordonsNodes(d time.Duration) Actor {
	set := func(w *World, name string, cordoned bool) {
		w.EditNode(CloudActor, name, func(n *corev1.Node) {
			n.Spec.Unschedulable = cordoned
			n.Spec.Taints = withoutTaint(n.Spec.Taints, corev1.TaintNodeUnschedulable)
			if cordoned {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
			}
		})
	}
	return func(w *World, rng *rand.Rand) {
		name := w.anyNode(rng)
		w.Tell(CloudActor, "cordons %s", name)
		set(w, name, true)
		w.After(d, func() { set(w, name, false) })
	}
}

// RelabelsNodes sets the label of a node at random to one of the values.
func RelabelsNodes(key string, values ...string) Actor {
	return func(w *World, rng *rand.Rand) {
		name, value := w.anyNode(rng), values[rng.IntN(len(values))]
		w.Tell(CloudActor, "labels %s %s=%s", name, key, value)
		w.EditNode(CloudActor, name, func(n *corev1.Node) { n.Labels[key] = value })
	}
}

// ReplacesNodes removes a node at random, and adds one of the same or another name after the time.
func ReplacesNodes(d time.Duration) Actor {
	return func(w *World, rng *rand.Rand) {
		name := w.anyNode(rng)
		if name == "" {
			return
		}
		next := name
		if rng.IntN(2) == 0 {
			next = fmt.Sprintf("node-%d", 10+rng.IntN(90))
		}
		w.RemoveNode(name)
		w.After(d, func() {
			if w.node(next) == nil {
				w.Tell(CloudActor, "adds %s", next)
				w.AddNode(next)
			}
		})
	}
}
