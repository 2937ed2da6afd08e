package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/hash"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
)

const (
	// sidecarSetHashAnnotation marks pods with injected sidecars, whoever owns them.
	sidecarSetHashAnnotation = "kruise.io/sidecarset-hash"

	// envPause is when an environment that could not be read is asked for again.
	envPause = 3 * time.Second
	// The first stop of an outdated container comes so long after it was found, and further ones follow in
	// growing distance.
	firstStop, longestStop = 3 * time.Second, 10 * time.Minute
	// kubeletTurn is what the kubelet gets to restart a container whose image has changed as well, so that there
	// is one restart and not two.
	kubeletTurn = 15 * time.Second
)

// Reports reports whether the pod gets the annotation: those of our workloads, those with injected sidecars, and those
// whose creator has put the annotation on them, even an empty one.
func Reports(pod *corev1.Pod) bool {
	if _, asked := pod.Annotations[contract.RuntimeContainersMetaAnnotation]; asked {
		return true
	}
	if pod.Annotations[sidecarSetHashAnnotation] != "" {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && strings.HasPrefix(owner.APIVersion, contract.AppsGroup+"/")
}

// Unread returns the IDs of containers whose environment a plan needs: running ones that are new, or whose
// environment could not be read before.
func Unread(s Snapshot) []string {
	if !s.EnvFromMetadata {
		return nil
	}
	known := recorded(s.Pod)
	var ids []string
	for i := range s.Pod.Status.ContainerStatuses {
		status := &s.Pod.Status.ContainerStatuses[i]
		c, spec := containerOf(s.Containers, status), specOf(s.Pod, status.Name)
		if c == nil || spec == nil || !c.Running || !readsMetadata(spec) {
			continue
		}
		if entry := known[c.ID]; entry == nil || entry.Hashes.ExtractedEnvFromMetadataHash == 0 {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// Compute makes the plan of a snapshot.
func Compute(s Snapshot) Plan {
	w := world{Snapshot: s, plan: Plan{Plan: action.Plan{Refusals: s.Refusals, Now: s.Now}, Outdated: map[string]Outdated{}}}
	w.report()
	if s.EnvFromMetadata && updating(s.Pod) {
		for i := range w.meta.Containers {
			w.restartIfOutdated(&w.meta.Containers[i])
		}
	}
	return w.plan
}

// world is what a plan is made with.
type world struct {
	Snapshot
	meta inplace.RuntimeContainersMeta
	plan Plan
}

// report makes the annotation: an entry for every container that the pod's status and the runtime both know.
func (w *world) report() {
	known := recorded(w.Pod)
	for i := range w.Pod.Status.ContainerStatuses {
		status := &w.Pod.Status.ContainerStatuses[i]
		c, spec := containerOf(w.Containers, status), specOf(w.Pod, status.Name)
		if c == nil || spec == nil {
			continue
		}
		entry := inplace.RuntimeContainer{
			Name: c.Name, ContainerID: c.ID, RestartCount: c.RestartCount, Hashes: inplace.ContainerHashes{PlainHash: c.Hash},
		}
		if before := known[c.ID]; before != nil {
			entry = *before
		}
		if w.EnvFromMetadata && entry.Hashes.ExtractedEnvFromMetadataHash == 0 {
			entry.Hashes.ExtractedEnvFromMetadataHash = w.envHash(spec, c)
		}
		w.meta.Containers = append(w.meta.Containers, entry)
	}
	if len(w.meta.Containers) == 0 {
		if !w.cannotStart() {
			return // nothing runs yet
		}
		w.meta.Containers = []inplace.RuntimeContainer{} // an empty list, not null
	}
	text, err := json.Marshal(w.meta)
	if err == nil && string(text) != w.Pod.Annotations[contract.RuntimeContainersMetaAnnotation] {
		w.plan.Annotation = string(text)
		w.write()
	}
}

// cannotStart reports whether a container that reads metadata waits for something else than its turn, such as an image
// that cannot be pulled: only an update may help, and the workload waits with that for an agent.
func (w *world) cannotStart() bool {
	return w.EnvFromMetadata && slices.ContainsFunc(w.Pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		spec, waits := specOf(w.Pod, s.Name), s.State.Waiting
		if spec == nil || waits == nil || waits.Reason == "" || waits.Reason == "ContainerCreating" || waits.Reason == "PodInitializing" {
			return false
		}
		return readsMetadata(spec)
	})
}

// write writes the annotation through the status: the agent may not change pods. Whatever has become of the pod, what its
// containers were started with stays true.
func (w *world) write() {
	w.plan.Add(action.Step{Name: "report", Actions: []action.Action{{
		Verb: action.PatchStatus, Object: w.Pod, Reason: "ContainerMetadata", Message: "what the containers were started with",
		Patches: []action.Patch{{Subresource: "status", AnyVersion: true, Body: map[string]any{
			"metadata": map[string]any{"annotations": map[string]string{contract.RuntimeContainersMetaAnnotation: w.plan.Annotation}},
		}}},
	}}})
}

// envHash returns the hash of what the container has read of its pod's metadata; 0 while its environment is not known.
func (w *world) envHash(spec *corev1.Container, c *Container) uint64 {
	if readsMetadata(spec) && c.Env == nil {
		if c.Running {
			w.plan.RequeueWithin(envPause)
		}
		return 0
	}
	return inplace.EnvHash(spec, func(env *corev1.EnvVar, _, _ string) string { return c.Env[env.Name] })
}

// restartIfOutdated stops a container that has read other values than the pod's metadata has now.
func (w *world) restartIfOutdated(entry *inplace.RuntimeContainer) {
	spec := specOf(w.Pod, entry.Name)
	i := slices.IndexFunc(w.Containers, func(c Container) bool { return c.ID == entry.ContainerID })
	read := entry.Hashes.ExtractedEnvFromMetadataHash
	if !w.Containers[i].Running || read == 0 || read == expectedHash(spec, w.Pod) {
		return
	}
	outdated, found := w.Snapshot.Outdated[entry.ContainerID]
	if !found {
		outdated = Outdated{Since: w.Now, Next: w.Now.Add(firstStop)}
	}
	next := outdated.Next
	if entry.Hashes.PlainHash != plainHash(spec) {
		next = later(next, outdated.Since.Add(kubeletTurn))
	}
	if next.After(w.Now) {
		w.plan.RequeueWithin(next.Sub(w.Now))
	} else {
		w.plan.Stop = append(w.plan.Stop, entry.ContainerID)
		outdated.Stops++
		pause := longestStop
		if outdated.Stops < 10 { // beyond it the pause is longer than the longest
			pause = min(longestStop, firstStop<<outdated.Stops)
		}
		outdated.Next = w.Now.Add(pause)
		w.plan.RequeueWithin(pause)
	}
	w.plan.Outdated[entry.ContainerID] = outdated
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// updating reports whether an in-place update is under way.
func updating(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == contract.InPlaceUpdateReady && c.Status == corev1.ConditionFalse
	})
}

// readsMetadata reports whether the container has variables that a label or an annotation sets.
func readsMetadata(spec *corev1.Container) bool {
	reads := false
	inplace.EnvHash(spec, func(*corev1.EnvVar, string, string) string {
		reads = true
		return ""
	})
	return reads
}

// expectedHash returns the hash of the environment that the container would get now.
func expectedHash(spec *corev1.Container, pod *corev1.Pod) uint64 {
	return inplace.EnvHash(spec, func(_ *corev1.EnvVar, field, key string) string {
		if field == "labels" {
			return pod.Labels[key]
		}
		return pod.Annotations[key]
	})
}

// plainHash returns the hash by which kubelets from 1.31 on know a container.
func plainHash(spec *corev1.Container) uint64 {
	text, _ := json.Marshal(map[string]string{"image": spec.Image, "name": spec.Name}) // strings always marshal
	return uint64(hash.Deep(text))
}

// recorded returns the entries of the present annotation by container ID. One that cannot be read counts as none.
func recorded(pod *corev1.Pod) map[string]*inplace.RuntimeContainer {
	meta, err := inplace.ReadRuntimeContainersMeta(pod)
	if err != nil || meta == nil {
		return nil
	}
	known := make(map[string]*inplace.RuntimeContainer, len(meta.Containers))
	for i := range meta.Containers {
		known[meta.Containers[i].ContainerID] = &meta.Containers[i]
	}
	return known
}

// containerOf returns the container that a status speaks of; nil if the runtime has it not.
func containerOf(containers []Container, status *corev1.ContainerStatus) *Container {
	i := slices.IndexFunc(containers, func(c Container) bool { return c.ID == status.ContainerID && c.Name == status.Name })
	if i < 0 {
		return nil
	}
	return &containers[i]
}

func specOf(pod *corev1.Pod, name string) *corev1.Container {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &pod.Spec.Containers[i]
}
