package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
)

// anyNode returns the name of a node at random; empty when there is none.
func anyNode(w *World, rng *rand.Rand) string {
	all := w.Nodes()
	if len(all) == 0 {
		return ""
	}
	return all[rng.IntN(len(all))].Name
}

// TaintsNodes taints a node at random and takes the taint away after the time.
func TaintsNodes(key string, effect corev1.TaintEffect, d time.Duration) Actor {
	return func(w *World, rng *rand.Rand) {
		name := anyNode(w, rng)
		w.Tell(cluster.CloudActor, "taints %s %s", name, effect)
		w.EditNode(cluster.CloudActor, name, func(n *corev1.Node) {
			n.Spec.Taints = append(nodes.WithoutTaint(n.Spec.Taints, key), corev1.Taint{Key: key, Effect: effect})
		})
		w.After(d, func() {
			w.EditNode(cluster.CloudActor, name, func(n *corev1.Node) { n.Spec.Taints = nodes.WithoutTaint(n.Spec.Taints, key) })
		})
	}
}

// CordonsNodes cordons a node at random and takes that back after the time.
func CordonsNodes(d time.Duration) Actor {
	set := func(w *World, name string, cordoned bool) {
		w.EditNode(cluster.CloudActor, name, func(n *corev1.Node) {
			n.Spec.Unschedulable = cordoned
			n.Spec.Taints = nodes.WithoutTaint(n.Spec.Taints, corev1.TaintNodeUnschedulable)
			if cordoned {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
			}
		})
	}
	return func(w *World, rng *rand.Rand) {
		name := anyNode(w, rng)
		w.Tell(cluster.CloudActor, "cordons %s", name)
		set(w, name, true)
		w.After(d, func() { set(w, name, false) })
	}
}

// RelabelsNodes sets the label of a node at random to one of the values.
func RelabelsNodes(key string, values ...string) Actor {
	return func(w *World, rng *rand.Rand) {
		name := anyNode(w, rng)
		value := values[rng.IntN(len(values))]
		w.Tell(cluster.CloudActor, "labels %s %s=%s", name, key, value)
		w.EditNode(cluster.CloudActor, name, func(n *corev1.Node) { n.Labels[key] = value })
	}
}

// ReplacesNodes removes a node at random, and adds one of the same or another name after the time.
func ReplacesNodes(d time.Duration) Actor {
	return func(w *World, rng *rand.Rand) {
		name := anyNode(w, rng)
		if name == "" {
			return
		}
		next := name
		if rng.IntN(2) == 0 {
			next = fmt.Sprintf("node-%d", 10+rng.IntN(90))
		}
		w.RemoveNode(name)
		w.After(d, func() {
			if !slices.ContainsFunc(w.Nodes(), func(n *corev1.Node) bool { return n.Name == next }) {
				w.Tell(cluster.CloudActor, "adds %s", next)
				w.AddNode(next)
			}
		})
	}
}

// FailsNodes fails a node at random and lets it recover after the time.
func FailsNodes(d time.Duration) Actor {
	return func(w *World, rng *rand.Rand) {
		name := fmt.Sprintf("node-%d", rng.IntN(w.Options.Nodes))
		if w.IsSilent(name) || !w.HasNode(name) {
			return
		}
		w.FailNode(name)
		w.After(d, func() { w.RecoverNode(name) })
	}
}

// RejectsPods lets the kubelet of a node at random reject the pods that come within the time, for it has run out of
// something that the scheduler counts otherwise. They have failed before any container ran, and stay until somebody deletes
// them.
func RejectsPods(d time.Duration) Actor {
	return func(w *World, rng *rand.Rand) {
		name := fmt.Sprintf("node-%d", rng.IntN(w.Options.Nodes))
		w.Tell(cluster.KubeletActor, "%s rejects pods for %s", name, d)
		w.RejectPods(name, w.Now().Add(d))
	}
}

// EvictsPods lets the kubelet of a pod at random end its containers for want of memory. The pod has
// failed then and stays until somebody deletes it.
func EvictsPods(w *World, rng *rand.Rand) {
	pod := anyPod(w, rng)
	if pod == nil || pod.DeletionTimestamp != nil {
		return
	}
	w.Evict(pod)
}
