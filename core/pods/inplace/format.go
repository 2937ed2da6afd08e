package inplace

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

// State is the JSON of annotation apps.kruise.io/inplace-update-state: the update that runs on the
// pod or ran last.
type State struct {
	// Revision is the name of the revision that the update leads to.
	Revision string `json:"revision"`
	// UpdateTimestamp is the start of the update, or of its grace period where it has one.
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	// LastContainerStatuses has the former image and container of each container with an image that was changed so far.
	LastContainerStatuses map[string]ContainerStatus `json:"lastContainerStatuses"`
	// UpdateEnvFromMetadata, UpdateResources and UpdateImages are true if the update changes environments, resources or
	// images, from its beginning to its end.
	UpdateEnvFromMetadata bool `json:"updateEnvFromMetadata,omitempty"`
	UpdateResources       bool `json:"updateResources,omitempty"`
	UpdateImages          bool `json:"updateImages,omitempty"`
	// Restarts are the containers that the node agent restarts although nothing about them changes, with the IDs that
	// they had when that was written. A container with another ID has been restarted.
	Restarts map[string]string `json:"restarts,omitempty"`
	// RaisedLimits are the containers, sorted, with limits that were raised by a write that is not known to be done.
	RaisedLimits []string `json:"raisedLimits,omitempty"`
	// SeenResizes are the resizes for other revisions that managedFields showed when the update began: the short hash
	// of the revision and the moment. Their effects are part of this update.
	SeenResizes []string `json:"seenResizes,omitempty"`
	// The Next members are the changes that later batches will write, by container.
	NextContainerImages      map[string]string                      `json:"nextContainerImages,omitempty"`
	NextContainerRefMetadata map[string]Metadata                    `json:"nextContainerRefMetadata,omitempty"`
	NextContainerResources   map[string]corev1.ResourceRequirements `json:"nextContainerResources,omitempty"`
	NextContainerRestarts    []string                               `json:"nextContainerRestarts,omitempty"`
	// PreCheckBeforeNext is a condition of the next batch, in addition to the completion of the batch before.
	PreCheckBeforeNext *PreCheck `json:"preCheckBeforeNext,omitempty"`
	// ContainerBatchesRecord has one entry for each batch written so far. Resizes of a batch may go ahead of its
	// restarts.
	ContainerBatchesRecord []Batch `json:"containerBatchesRecord,omitempty"`
}

// ContainerStatus has the image and the container that ran before an image change.
type ContainerStatus struct {
	// ImageID is the image ID in the container's status. It is empty while an earlier change was
	// still on its way, so that another image than the wanted one could follow.
	ImageID string `json:"imageID,omitempty"`
	// ContainerID is the ID of the container that the update replaces, empty when none ran or an
	// earlier change was on its way. It is nil in annotations that OpenKruise has written.
	ContainerID *string `json:"containerID,omitempty"`
}

// PreCheck names the containers that must be ready before the next batch, sorted.
type PreCheck struct {
	ContainersRequiredReady []string `json:"containersRequiredReady,omitempty"`
}

// Batch is one batch of containers, sorted, and the moment at which it was last written to.
type Batch struct {
	Timestamp  metav1.Time `json:"timestamp"`
	Containers []string    `json:"containers"`
}

// Metadata is a change of labels and annotations; nil removes a key.
type Metadata struct {
	Labels      map[string]*string `json:"labels,omitempty"`
	Annotations map[string]*string `json:"annotations,omitempty"`
}

// Grace is the JSON of annotation apps.kruise.io/inplace-update-grace: an update that waits until the pod is out of
// service, and for its grace period.
type Grace struct {
	// Revision is the name of the revision that the update leads to.
	Revision string `json:"revision"`
	// The Container members are the changes of the update, by container.
	ContainerImages      map[string]string                      `json:"containerImages,omitempty"`
	ContainerRefMetadata map[string]Metadata                    `json:"containerRefMetadata,omitempty"`
	ContainerResources   map[string]corev1.ResourceRequirements `json:"containerResources,omitempty"`
	ContainerRestarts    []string                               `json:"containerRestarts,omitempty"`
	// RestartsOwed are the containers that the pod's present value of contract.RestartInPlaceAnnotation still asks to
	// restart, with the IDs that they have until then.
	RestartsOwed map[string]string `json:"restartsOwed,omitempty"`
	// MetadataPatch is a strategic merge patch of the pod's metadata.
	MetadataPatch []byte `json:"metaDataPatch,omitempty"`
	// UpdateEnvFromMetadata is true if containers read a changed key.
	UpdateEnvFromMetadata bool `json:"updateEnvFromMetadata,omitempty"`
	// GraceSeconds is the grace period. Without one the update waits until the pod is not ready.
	GraceSeconds int32 `json:"graceSeconds,omitempty"`
	// NotReadySince is the transition time of the pod's condition Ready with which the grace period began; empty before.
	NotReadySince string `json:"notReadySince,omitempty"`
}

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

// ReadRuntimeContainersMeta reads the node agent's annotation; nil when the pod has none.
func ReadRuntimeContainersMeta(pod *corev1.Pod) (*RuntimeContainersMeta, error) {
	return decode[RuntimeContainersMeta](contract.RuntimeContainersMetaAnnotation, pod.Annotations[contract.RuntimeContainersMetaAnnotation])
}

// readState reads the state of an update from the pod; nil when it has none.
func readState(c *action.PodChange) (*State, error) {
	return decode[State](contract.InPlaceUpdateStateAnnotation,
		current(c, contract.InPlaceUpdateStateAnnotation, contract.LegacyInPlaceUpdateStateAnnotation))
}

func readGrace(c *action.PodChange) (*Grace, error) {
	return decode[Grace](contract.InPlaceUpdateGraceAnnotation,
		current(c, contract.InPlaceUpdateGraceAnnotation, contract.LegacyInPlaceUpdateGraceAnnotation))
}

func writeState(c *action.PodChange, s *State) {
	c.SetAnnotation(contract.InPlaceUpdateStateAnnotation, encode(s))
	c.RemoveAnnotation(contract.LegacyInPlaceUpdateStateAnnotation)
}

func writeGrace(c *action.PodChange, g *Grace) {
	c.SetAnnotation(contract.InPlaceUpdateGraceAnnotation, encode(g))
	c.RemoveAnnotation(contract.LegacyInPlaceUpdateGraceAnnotation)
}

func removeGrace(c *action.PodChange) {
	c.RemoveAnnotation(contract.InPlaceUpdateGraceAnnotation)
	c.RemoveAnnotation(contract.LegacyInPlaceUpdateGraceAnnotation)
}

// current is the text under the key, or under its legacy form when the key is absent.
func current(c *action.PodChange, key, legacy string) string {
	if text, ok := c.LookupAnnotation(key); ok {
		return text
	}
	return c.Annotation(legacy)
}

func decode[T any](key, text string) (*T, error) {
	if text == "" {
		return nil, nil
	}
	v := new(T)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return nil, fmt.Errorf("read annotation %s: %w", key, err)
	}
	return v, nil
}

// encode marshals types that always marshal: maps, texts, times and quantities.
func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("marshal %T: %v", v, err))
	}
	return string(text)
}
