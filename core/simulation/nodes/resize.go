package nodes

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// allocate are the containers as the kubelet runs them: with the resources of the spec where the node can give what any
// of them asks for, and with those of before where one asks for more than the node has, or has left for a pod that runs
// there. Then all wait, as on a real node.
func (w *World) allocate(r *podRuntime, pod *corev1.Pod) []*corev1.Container {
	containers := podspec.LongRunning(&pod.Spec)
	r.pending = ""
	for i, c := range containers {
		if !cluster.Same(r.containers[i].spec.Resources, c.Resources) && r.pending != corev1.PodReasonInfeasible {
			r.pending = cmp.Or(w.room(pod, c), r.pending)
		}
	}
	if r.pending == "" {
		return containers
	}
	for i, c := range containers {
		allocated := *c
		allocated.Resources = r.containers[i].spec.Resources
		containers[i] = &allocated
	}
	return containers
}

// room returns the reason why the node of a pod cannot give a container of it its resources.
func (w *World) room(pod *corev1.Pod, c *corev1.Container) string {
	if w.Options.Room != nil {
		return w.Options.Room(w.World, pod)
	}
	switch cpu := c.Resources.Requests.Cpu(); {
	case cpu.CmpInt64(cluster.NodeCPU) > 0:
		return corev1.PodReasonInfeasible
	case cpu.CmpInt64(leftCPU) > 0:
		return corev1.PodReasonDeferred
	}
	return ""
}

// freed lets the kubelet of a node with more room look again at the resizes that it has put off, and the scheduler at the pods
// that wait for a node, where the options decide about them.
func (w *World) freed(node string) {
	if w.Options.Schedule == nil && w.Options.Room == nil {
		return
	}
	for _, pod := range w.Pods() {
		r := w.runtimes[pod.UID]
		switch {
		case w.Options.Schedule != nil && pod.Spec.NodeName == "":
			key, uid := cluster.KeyOf(pod), pod.UID
			w.After(w.Takes(cluster.Scheduling, time.Second), func() { w.schedule(key, uid) })
		case w.Options.Room != nil && pod.Spec.NodeName == node && r != nil && r.pending == corev1.PodReasonDeferred:
			w.After(w.Takes(cluster.Noticing, time.Second), func() { w.sync(r.key, r.uid) })
		}
	}
}

// resize gives a running container its new quantities and the pod's cgroup those of the pod; the container may have to
// restart for them. A memory limit below what the container uses fails.
func (w *World) resize(r *podRuntime, c *containerRuntime) {
	c.epoch++
	epoch := c.epoch
	r.failed = ""
	w.After(w.Takes(cluster.Resizing, 3*time.Second), func() {
		if c.epoch != epoch {
			return
		}
		if c.restartsFor() {
			r.cgroup = r.limits()
			w.restart(r, c)
			return
		}
		if now, was := c.spec.Resources.Limits.Memory(), c.resources.Limits.Memory(); now.Cmp(*was) < 0 && w.tooLow(c, c.spec.Resources.Limits) {
			r.failed = "the memory limit is below what container " + c.name + " uses"
		} else {
			c.resources = c.spec.Resources
			r.cgroup = r.limits()
			w.freed(r.node)
		}
		w.report(r)
		if !c.ready { // the probe that the resize cut off goes on
			w.settleContainer(r, c)
		}
	})
}

// starves reports whether the container is killed for its memory: its limit, or that of its pod's cgroup, is below what
// it uses.
func (w *World) starves(r *podRuntime, c *containerRuntime) bool {
	return w.tooLow(c, c.resources.Limits) || w.tooLow(c, r.cgroup)
}

// tooLow reports whether the memory limit of the list is below what the container's image uses.
func (w *World) tooLow(c *containerRuntime, limits corev1.ResourceList) bool {
	limit, limited := limits[corev1.ResourceMemory]
	return limited && limit.Cmp(w.image(c.spec.Image).Memory) < 0
}

// limits are those of a pod with the containers as they are to run.
func (r *podRuntime) limits() corev1.ResourceList {
	var spec corev1.PodSpec
	for _, c := range r.containers {
		spec.Containers = append(spec.Containers, *c.spec)
	}
	return limitsOf(&spec)
}

// limitsOf are the limits of a pod's cgroup: what its containers may have together, of resources of which each of them is
// limited.
func limitsOf(spec *corev1.PodSpec) corev1.ResourceList {
	limits := corev1.ResourceList{}
	containers := podspec.LongRunning(spec)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		var sum resource.Quantity
		limited := true
		for _, c := range containers {
			q, ok := c.Resources.Limits[name]
			limited = limited && ok
			sum.Add(q)
		}
		if limited {
			limits[name] = sum
		}
	}
	return limits
}
