package agentreport

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/hash"
	"github.com/flotilla-project/flotilla/core/pods/inplace/annotation"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
)

// RuntimeContainersMeta is the JSON of annotation apps.kruise.io/runtime-containers-meta, by which the node agent
// reports the running containers, with hashes of their spec and environment.
type RuntimeContainersMeta struct {
	Containers []RuntimeContainer `json:"containers"`
}

// RuntimeContainer is one running container.
type RuntimeContainer struct {
	Name         string          `json:"name"`
	ContainerID  string          `json:"containerID"`
	RestartCount int32           `json:"restartCount"`
	Hashes       ContainerHashes `json:"hashes"`
}

// ContainerHashes are the hashes of the spec and the environment that a container was started with.
type ContainerHashes struct {
	// PlainHash is the hash that the kubelet recorded on the container.
	PlainHash uint64 `json:"plainHash"`
	// ExtractedEnvFromMetadataHash is the EnvHash of the container's real environment.
	ExtractedEnvFromMetadataHash uint64 `json:"extractedEnvFromMetadataHash,omitempty"`
}

// StartedFrom reports whether the node agent found the hash of the present spec on the shown container.
func StartedFrom(pod *corev1.Pod, spec *corev1.Container, status *corev1.ContainerStatus) bool {
	c := Of(pod, status)
	if c == nil {
		return false
	}
	hashes := PlainHashes(spec)
	return slices.Contains(hashes[:], c.Hashes.PlainHash)
}

// Of is the node agent's report of the shown container, nil when there is none.
func Of(pod *corev1.Pod, status *corev1.ContainerStatus) *RuntimeContainer {
	meta, err := Read(pod)
	if err != nil || meta == nil || status == nil || status.ContainerID == "" {
		return nil
	}
	for i := range meta.Containers {
		if meta.Containers[i].Name == status.Name && meta.Containers[i].ContainerID == status.ContainerID {
			return &meta.Containers[i]
		}
	}
	return nil
}

// Read reads the node agent's annotation; nil when the pod has none.
func Read(pod *corev1.Pod) (*RuntimeContainersMeta, error) {
	return annotation.Decode[RuntimeContainersMeta](contract.RuntimeContainersMetaAnnotation, pod.Annotations[contract.RuntimeContainersMetaAnnotation])
}

// StartedWith is the hash of the environment of the container that the status shows; false when the node agent has not
// reported that container, or does not look at environments.
func StartedWith(pod *corev1.Pod, name string) (uint64, bool) {
	running := Of(pod, running.Status(pod, name))
	if running == nil {
		return 0, false
	}
	read := running.Hashes.ExtractedEnvFromMetadataHash
	return read, read != 0
}

// YetToStart reports whether the container was never started, on a node with an agent that looks at environments. It
// will read the pod's metadata of the moment when it starts, or the agent restarts it.
func YetToStart(pod *corev1.Pod, name string) bool {
	if status := running.Status(pod, name); status != nil && status.ContainerID != "" {
		return false
	}
	meta, err := Read(pod)
	return err == nil && meta != nil && !slices.ContainsFunc(meta.Containers, func(c RuntimeContainer) bool {
		return c.Hashes.ExtractedEnvFromMetadataHash == 0
	})
}

// PlainHashes are the hashes by which kubelets know a container of the spec: those from 1.31 on hash
// name and image only, older ones all of it.
func PlainHashes(c *corev1.Container) [2]uint64 {
	return [2]uint64{
		TextHash(annotation.Encode(map[string]string{"image": c.Image, "name": c.Name})),
		TextHash(annotation.Encode(c)),
	}
}

// TextHash hashes bytes in the way in which Kubernetes' controllers hash templates.
func TextHash(text string) uint64 { return uint64(hash.Object([]byte(text))) }
