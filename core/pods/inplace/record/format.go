package record

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/annotation"
)

// State is the JSON of annotation apps.kruise.io/inplace-update-state: the update that runs on the
// pod or ran last.
//
// The record of a pod has these states. The gate is condition InPlaceUpdateReady of the pod.
//
//	none
//	 |
//	 +-- begin, if the pod serves or has a grace period, and a container stops --> PLANNED
//	 +-- begin, otherwise -------------------------------------------------------> WRITTEN
//
//	PLANNED   State and Grace, gate False, nothing changed yet
//	 |        waits until the kubelet reports the pod not ready, and for the grace period
//	 |
//	 +-- time is up -------------------------------------------------------------> WRITTEN
//	 +-- the pod is labelled with another revision: Grace is removed ------------> none
//
//	WRITTEN   State with a batch in ContainerBatchesRecord; gate False if a container stops
//	 |        waits until kubelet and node agent have carried the batch out
//	 |
//	 +-- with Next members, once the containers of the batch are ready ----------> WRITTEN
//	 +-- without ----------------------------------------------------------------> DONE
//
//	DONE      State without Next members, gate True
//
// Another update begins in any state, and takes along the changes that are written and not done. If the State cannot be
// read, the next update compares the whole pod.
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

// ReadState reads the state of an update from the pod; nil when it has none.
func ReadState(c *action.PodChange) (*State, error) {
	return annotation.Decode[State](contract.InPlaceUpdateStateAnnotation,
		Current(c, contract.InPlaceUpdateStateAnnotation, contract.LegacyInPlaceUpdateStateAnnotation))
}

func readGrace(c *action.PodChange) (*Grace, error) {
	return annotation.Decode[Grace](contract.InPlaceUpdateGraceAnnotation,
		Current(c, contract.InPlaceUpdateGraceAnnotation, contract.LegacyInPlaceUpdateGraceAnnotation))
}

// WriteState writes the state of an update.
func WriteState(c *action.PodChange, s *State) {
	c.SetAnnotation(contract.InPlaceUpdateStateAnnotation, annotation.Encode(s))
	c.RemoveAnnotation(contract.LegacyInPlaceUpdateStateAnnotation)
}

// WriteGrace writes an update that waits until the pod is out of service.
func WriteGrace(c *action.PodChange, g *Grace) {
	c.SetAnnotation(contract.InPlaceUpdateGraceAnnotation, annotation.Encode(g))
	c.RemoveAnnotation(contract.LegacyInPlaceUpdateGraceAnnotation)
}

// RemoveGrace removes the update that waits.
func RemoveGrace(c *action.PodChange) {
	c.RemoveAnnotation(contract.InPlaceUpdateGraceAnnotation)
	c.RemoveAnnotation(contract.LegacyInPlaceUpdateGraceAnnotation)
}

// Current is the text under the key, or under its legacy form when the key is absent.
func Current(c *action.PodChange, key, legacy string) string {
	if text, ok := c.LookupAnnotation(key); ok {
		return text
	}
	return c.Annotation(legacy)
}
