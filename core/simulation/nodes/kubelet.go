package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// podRuntime is what really runs on a node for one pod, whatever the API shows.
type podRuntime struct {
	key        types.NamespacedName
	uid        types.UID
	address    string
	started    time.Time
	generation int64 // of the spec that the kubelet has taken in
	ending     bool
	ended      corev1.PodPhase
	rejected   bool                 // no container ever runs
	cgroup     corev1.ResourceList  // the limits of the pod's cgroup
	pending    string               // why a resize is put off or does not fit on the node; empty where it is neither
	failed     string               // why the node failed to resize a container; empty where it did not
	containers []*containerRuntime  // native sidecars first
	composed   int                  // statuses composed so far
	seen       time.Time            // when the kubelet saw the pod as the latest written status has it
	written    int                  // the latest of them that was written
	ready      *corev1.PodCondition // Ready as it was last written
	node       string
}

// reactToPod is what scheduler and kubelet do because of an event of a pod.
func (w *World) reactToPod(e cluster.Event, pod, old *corev1.Pod) {
	key := cluster.KeyOf(pod)
	switch {
	case e.Type == cluster.Deleted:
		delete(w.runtimes, pod.UID)
		w.freed(pod.Spec.NodeName)
	case pod.Spec.NodeName == "":
		if e.Type == cluster.Added {
			w.After(w.Takes(cluster.Scheduling, time.Second), func() { w.schedule(key, pod.UID) })
		}
	case e.Type == cluster.Added || old.Spec.NodeName == "":
		if e.Type == cluster.Added && (len(pod.Status.ContainerStatuses) > 0 || podstate.IsFinished(pod)) {
			w.takeOver(pod)
			return
		}
		w.After(w.Takes(cluster.Noticing, time.Second), func() { w.run(key, pod.UID) })
	case e.Actor != cluster.KubeletActor && (pod.Generation != old.Generation || !cluster.Same(pod.Status.Conditions, old.Status.Conditions)):
		w.repeatReady(pod)
		w.After(w.Takes(cluster.Noticing, 2*time.Second), func() { w.sync(key, pod.UID) })
	}
}

// run starts a pod on its node: one container after the other, each after its image was pulled.
func (w *World) run(key types.NamespacedName, uid types.UID) {
	pod := w.Pod(key, uid)
	if pod == nil || w.runtimes[uid] != nil {
		return
	}
	w.addresses++
	r := &podRuntime{
		key:        key,
		uid:        uid,
		started:    w.Now(),
		generation: pod.Generation,
		address:    addressOf(w.addresses),
		node:       pod.Spec.NodeName,
	}
	w.runtimes[uid] = r
	if w.Now().Before(w.full[r.node]) {
		r.ending = true
		r.ended = corev1.PodFailed
		r.rejected = true
		w.report(r)
		return
	}
	r.cgroup = limitsOf(&pod.Spec)
	for _, spec := range podspec.LongRunning(&pod.Spec) {
		c := &containerRuntime{
			name:    spec.Name,
			spec:    spec,
			waiting: "ContainerCreating",
		}
		r.containers = append(r.containers, c)
		w.startLater(r, c)
	}
	w.report(r)
	if pod.DeletionTimestamp != nil {
		w.sync(key, uid)
	}
}

// sync takes the present spec of the pod in, or ends the pod.
func (w *World) sync(key types.NamespacedName, uid types.UID) {
	pod, r := w.Pod(key, uid), w.runtimes[uid]
	switch {
	case pod == nil || w.silent[pod.Spec.NodeName]:
		return
	case r == nil: // deleted before it was started
		if pod.DeletionTimestamp != nil {
			w.remove(key, uid)
		}
		return
	case pod.DeletionTimestamp != nil:
		w.end(r)
		return
	case r.ended != "": // nothing starts again, but the node may have been silent when it ended
		w.report(r)
		return
	}
	r.generation = pod.Generation
	for i, spec := range w.allocate(r, pod) {
		w.syncContainer(r, r.containers[i], spec)
	}
	// The generation shows at once, the containers follow: so do real kubelets.
	w.report(r)
}

// syncContainer takes the present spec of the container in.
func (w *World) syncContainer(r *podRuntime, c *containerRuntime, spec *corev1.Container) {
	imageChanged := c.spec.Image != spec.Image
	resized := !cluster.Same(c.spec.Resources, spec.Resources)
	c.spec = spec
	switch {
	case imageChanged && c.running && c.ran == spec.Image && !w.agents.stops(c): // back before anything was stopped
		c.epoch++
		if !c.ready {
			w.settleContainer(r, c)
		}
	case imageChanged:
		w.restart(r, c)
	case resized && c.running && c.ran == spec.Image && !w.agents.stops(c): // what is about to start takes the new quantities anyway
		w.resize(r, c)
	}
}

// end stops the containers and then lets the pod go.
func (w *World) end(r *podRuntime) {
	if r.ending {
		if r.ended != "" { // the node was silent when the time was over
			w.remove(r.key, r.uid)
		}
		return
	}
	r.ending = true
	w.After(w.Takes(cluster.Stopping, 5*time.Second), func() {
		phase := corev1.PodSucceeded
		if w.Chance(0.5) {
			phase = corev1.PodFailed
		}
		w.stop(r, phase)
	})
	w.After(w.removal(), func() { w.remove(r.key, r.uid) })
}

// removal is the time from the signal to the containers of a pod until its object may go.
func (w *World) removal() time.Duration {
	if w.Options.Takes != nil {
		return w.Options.Takes(cluster.Stopping) + w.Options.Takes(cluster.Removing)
	}
	return w.Delay(5*time.Second) + 5*time.Second
}

// stop stops all containers for good.
func (w *World) stop(r *podRuntime, phase corev1.PodPhase) {
	for _, c := range r.containers {
		c.epoch++
		c.running, c.ready, c.waiting = false, false, ""
	}
	r.ended = phase
	w.report(r)
}

// remove is the kubelet's last word: the grace period is over. Finalizers may keep the object.
func (w *World) remove(key types.NamespacedName, uid types.UID) {
	pod := w.Pod(key, uid)
	if pod == nil || w.silent[pod.Spec.NodeName] {
		return
	}
	n := *pod
	none, at := int64(0), w.Stamp()
	n.DeletionGracePeriodSeconds, n.DeletionTimestamp = &none, &at // the server moves the timestamp, too
	if cluster.Gone(&n) {
		w.Commit(cluster.Event{
			Type:   cluster.Deleted,
			Actor:  cluster.KubeletActor,
			Object: &n,
			Old:    pod,
		})
		return
	}
	if pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds != 0 {
		w.Commit(cluster.Event{
			Type:   cluster.Modified,
			Actor:  cluster.KubeletActor,
			Object: &n,
			Old:    pod,
		})
	}
}
