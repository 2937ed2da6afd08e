package nodes

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
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// Agents are the agents of all nodes. A nil pointer means that no node has one.
type Agents struct {
	// OnRestart is called when an agent stops a container because the in-place update of its pod asks for that. Optional.
	OnRestart func(pod *corev1.Pod, container, id string)

	world   *World
	started map[string]uint64         // the environment from metadata, as a hash, by the ID of the container
	stopped map[string]bool           // containers, by their ID
	shown   map[types.UID]*corev1.Pod // as the kubelets know its metadata
}

// NodeAgents gives every node an agent. It reports the environment of running containers in an annotation. While a pod
// is out of service, it stops containers that were started with other values than the pod's metadata has now, and those
// whose restart its in-place update asks for.
func (w *World) NodeAgents() *Agents {
	a := &Agents{
		world:   w,
		started: map[string]uint64{},
		stopped: map[string]bool{},
		shown:   map[types.UID]*corev1.Pod{},
	}
	w.agents = a
	for _, pod := range w.Pods() {
		a.believe(pod)
	}
	w.OnEvent(func(e cluster.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok || e.Type == cluster.Deleted || e.Actor == cluster.AgentActor {
			return
		}
		w.After(w.Delay(2*time.Second), func() { a.updateKubelet(pod) })
		w.After(w.Delay(4*time.Second), func() { a.report(cluster.KeyOf(pod), pod.UID) })
	})
	return a
}

// believe takes the environments over that an agent has reported of a pod before the world began.
func (a *Agents) believe(pod *corev1.Pod) {
	reported, err := agentreport.Read(pod)
	if err != nil || reported == nil {
		return
	}
	for _, c := range reported.Containers {
		a.started[c.ContainerID] = c.Hashes.ExtractedEnvFromMetadataHash
	}
}

// updateKubelet gives the kubelet the present metadata of the pod.
func (a *Agents) updateKubelet(pod *corev1.Pod) {
	if latest := a.world.Pod(cluster.KeyOf(pod), pod.UID); latest != nil {
		a.shown[pod.UID] = latest
	}
}

// start records the environment with which a container starts. Kubelets make it from the metadata that they know.
func (a *Agents) start(r *podRuntime, c *containerRuntime) {
	if a == nil {
		return
	}
	known := a.shown[r.uid]
	if known == nil {
		known = a.world.Pod(r.key, r.uid)
	}
	if known != nil {
		a.started[c.id] = agentreport.ExpectedEnvHash(c.spec, known)
	}
}

// report writes the annotation of a pod, and stops its outdated containers if the pod is out of service.
func (a *Agents) report(key types.NamespacedName, uid types.UID) {
	pod := a.world.Pod(key, uid)
	r := a.world.runtimes[uid]
	if pod == nil || r == nil || pod.DeletionTimestamp != nil || r.ended != "" || a.world.silent[r.node] {
		return
	}
	meta := agentreport.RuntimeContainersMeta{Containers: []agentreport.RuntimeContainer{}}
	reported := false
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		reported = reported || s.ContainerID != "" || s.State.Waiting != nil && s.State.Waiting.Reason != "ContainerCreating"
		if s.ContainerID == "" {
			continue
		}
		meta.Containers = append(meta.Containers, agentreport.RuntimeContainer{
			Name:         s.Name,
			ContainerID:  s.ContainerID,
			RestartCount: s.RestartCount,
			Hashes:       agentreport.ContainerHashes{ExtractedEnvFromMetadataHash: a.started[s.ContainerID]},
		})
	}
	if !reported { // nothing has run, and no error is known that prevents it
		return
	}
	text, err := json.Marshal(meta)
	if err != nil {
		panic(err) // strings and numbers only
	}
	_ = cluster.Change(a.world, cluster.AgentActor, "", pod, func(p *corev1.Pod) {
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[contract.RuntimeContainersMetaAnnotation] = string(text)
	})
	if InPlaceUpdateReady(pod) == corev1.ConditionFalse {
		a.stopOutdated(pod, r)
	}
}

// stopOutdated stops the containers whose environment differs from the one that the metadata of the pod gives, and those
// whose restart is asked for. A container with another image is the kubelet's to replace.
func (a *Agents) stopOutdated(pod *corev1.Pod, r *podRuntime) {
	asked := record.RestartsUnderWay(pod)
	for i, spec := range podspec.LongRunning(&pod.Spec) {
		c := r.containers[i]
		restart := asked[c.name] == c.id && c.ran == spec.Image
		if !c.running || a.stopped[c.id] || !restart && a.upToDate(pod, c) {
			continue
		}
		a.stopped[c.id] = true
		if restart && a.OnRestart != nil {
			a.OnRestart(pod, c.name, c.id)
		}
		a.world.restart(r, c)
	}
}

// stops reports whether an agent has told the runtime to stop the container that runs.
func (a *Agents) stops(c *containerRuntime) bool { return a != nil && a.stopped[c.id] }

// upToDate reports whether the container was started with the environment that the metadata of the pod gives.
func (a *Agents) upToDate(pod *corev1.Pod, c *containerRuntime) bool {
	return !agentreport.ReadsMetadata(c.spec) || a.started[c.id] == agentreport.ExpectedEnvHash(c.spec, pod)
}

// Outdated returns the names of the containers that run with another environment than the metadata of the pod gives.
func (a *Agents) Outdated(pod *corev1.Pod) []string {
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

// InPlaceUpdateReady returns the status of condition InPlaceUpdateReady of the pod, Unknown if it has none.
func InPlaceUpdateReady(pod *corev1.Pod) corev1.ConditionStatus {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == contract.InPlaceUpdateReady {
			return pod.Status.Conditions[i].Status
		}
	}
	return corev1.ConditionUnknown
}
