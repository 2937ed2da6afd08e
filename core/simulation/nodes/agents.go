package simulate

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// AgentActor is the actor of writes by agents of nodes.
const AgentActor = "agent"

// agents are the agents of all nodes. A nil pointer means that no node has one.
type agents struct {
	world   *World
	started map[string]uint64         // the environment from metadata, as a hash, by the ID of the container
	stopped map[string]bool           // containers, by their ID
	edited  map[types.UID]bool        // pods of which an actor other than the operator wrote the metadata last
	shown   map[types.UID]*corev1.Pod // as the kubelets know its metadata
	asked   restarts
}

// NodeAgents gives every node an agent. It reports the environment of running containers in an annotation. While a pod
// is out of service, it stops containers that were started with other values than the pod's metadata has now, and those
// whose restart its in-place update asks for. From then on a pod whose metadata the operator wrote last must not come
// back into service while a container runs with an outdated environment or is to be restarted, no container may be
// restarted twice for one change of the annotation that restarts it, and nothing is restarted together with a native
// sidecar before it.
func (w *World) NodeAgents() {
	a := &agents{
		world: w, started: map[string]uint64{}, stopped: map[string]bool{}, edited: map[types.UID]bool{}, shown: map[types.UID]*corev1.Pod{},
		asked: newRestarts(w),
	}
	w.agents = a
	w.OnEvent(func(w *World, e Event) {
		pod, ok := e.Object.(*corev1.Pod)
		old, _ := e.Old.(*corev1.Pod)
		if !ok || e.Type == Deleted || e.Actor == AgentActor {
			return
		}
		a.watch(e.Actor, old, pod)
		w.After(w.delay(2*time.Second), func() { a.updateKubelet(pod) })
		w.After(w.delay(4*time.Second), func() { a.report(keyOf(pod), pod.UID) })
	})
}

// updateKubelet gives the kubelet the present metadata of the pod.
func (a *agents) updateKubelet(pod *corev1.Pod) {
	if latest := a.world.pod(keyOf(pod), pod.UID); latest != nil {
		a.shown[pod.UID] = latest
	}
}

// start records the environment with which a container starts. Kubelets make it from the metadata that they know.
func (a *agents) start(r *podRuntime, c *containerRuntime) {
	if a == nil {
		return
	}
	known := a.shown[r.uid]
	if known == nil {
		known = a.world.pod(r.key, r.uid)
	}
	if known != nil {
		a.started[c.id] = agentreport.ExpectedEnvHash(c.spec, known)
	}
}

// report writes the annotation of a pod, and stops its outdated containers if the pod is out of service.
func (a *agents) report(key types.NamespacedName, uid types.UID) {
	pod, r := a.world.pod(key, uid), a.world.runtimes[uid]
	if pod == nil || r == nil || pod.DeletionTimestamp != nil || r.ended != "" || a.world.silent[r.node] {
		return
	}
	meta, reported := agentreport.RuntimeContainersMeta{Containers: []agentreport.RuntimeContainer{}}, false
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		reported = reported || s.ContainerID != "" || s.State.Waiting != nil && s.State.Waiting.Reason != "ContainerCreating"
		if s.ContainerID == "" {
			continue
		}
		meta.Containers = append(meta.Containers, agentreport.RuntimeContainer{
			Name: s.Name, ContainerID: s.ContainerID, RestartCount: s.RestartCount,
			Hashes: agentreport.ContainerHashes{ExtractedEnvFromMetadataHash: a.started[s.ContainerID]},
		})
	}
	if !reported { // nothing has run, and no error is known that prevents it
		return
	}
	text, err := json.Marshal(meta)
	if err != nil {
		panic(err) // strings and numbers only
	}
	_ = Change(a.world, AgentActor, "", pod, func(p *corev1.Pod) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[contract.RuntimeContainersMetaAnnotation] = string(text)
	})
	if inPlaceUpdateReady(pod) == corev1.ConditionFalse {
		a.stopOutdated(pod, r)
	}
}

// stopOutdated stops the containers whose environment differs from the one that the metadata of the pod gives, and those
// whose restart is asked for. A container with another image is the kubelet's to replace.
func (a *agents) stopOutdated(pod *corev1.Pod, r *podRuntime) {
	asked := record.RestartsUnderWay(pod)
	for i, spec := range podspec.LongRunning(&pod.Spec) {
		c := r.containers[i]
		restart := asked[c.name] == c.id && c.ran == spec.Image
		if !c.running || a.stopped[c.id] || !restart && a.upToDate(pod, c) {
			continue
		}
		a.stopped[c.id] = true
		if restart {
			a.asked.count(pod, c)
		}
		a.world.restart(r, c)
	}
}

// stops reports whether an agent has told the runtime to stop the container that runs.
func (a *agents) stops(c *containerRuntime) bool { return a != nil && a.stopped[c.id] }

// upToDate reports whether the container was started with the environment that the metadata of the pod gives.
func (a *agents) upToDate(pod *corev1.Pod, c *containerRuntime) bool {
	return !agentreport.ReadsMetadata(c.spec) || a.started[c.id] == agentreport.ExpectedEnvHash(c.spec, pod)
}

// watch checks pods that come back into service, and records who writes metadata.
func (a *agents) watch(actor string, old, pod *corev1.Pod) {
	if old == nil {
		return
	}
	if a.metadataDiffers(old, pod) {
		a.edited[pod.UID] = actor != OperatorActor
	}
	back := inPlaceUpdateReady(old) == corev1.ConditionFalse && inPlaceUpdateReady(pod) == corev1.ConditionTrue
	if actor == OperatorActor {
		a.asked.watch(old, pod, back)
	}
	if actor == OperatorActor && back && !a.edited[pod.UID] {
		for _, name := range a.outdatedContainers(pod) {
			a.world.Violate("pod %s comes back into service, but container %s has not read its environment", pod.Name, name)
		}
	}
}

func (a *agents) metadataDiffers(old, pod *corev1.Pod) bool {
	return slices.ContainsFunc(podspec.LongRunning(&pod.Spec), func(c *corev1.Container) bool {
		return agentreport.ExpectedEnvHash(c, old) != agentreport.ExpectedEnvHash(c, pod)
	})
}

// outdatedContainers returns the names of the containers that run with another environment than the metadata of the pod
// gives.
func (a *agents) outdatedContainers(pod *corev1.Pod) []string {
	var names []string
	if r := a.world.runtimes[pod.UID]; r != nil {
		for _, c := range r.containers {
			if c.running && !a.upToDate(pod, c) {
				names = append(names, c.name)
			}
		}
	}
	return names
}

// allOutdated lists the containers that run with another environment than the metadata of their pods gives, except in
// pods whose metadata an actor other than the operator wrote last, and in those that are ending.
func (a *agents) allOutdated() []string {
	var all []string
	for _, pod := range a.world.Pods() {
		if a.edited[pod.UID] || !podstate.Of(pod, a.world.now, 0).Active {
			continue
		}
		for _, name := range a.outdatedContainers(pod) {
			all = append(all, "container "+name+" of pod "+pod.Name+" has not read its environment")
		}
	}
	return append(all, a.asked.left()...)
}

func inPlaceUpdateReady(pod *corev1.Pod) corev1.ConditionStatus {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == contract.InPlaceUpdateReady {
			return pod.Status.Conditions[i].Status
		}
	}
	return corev1.ConditionUnknown
}
