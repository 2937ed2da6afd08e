package record

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// WrittenAt is the moment of the last batch with the container.
func (s *State) WrittenAt(container string) time.Time {
	for _, batch := range slices.Backward(s.ContainerBatchesRecord) {
		if slices.Contains(batch.Containers, container) {
			return batch.Timestamp.Time
		}
	}
	return s.UpdateTimestamp.Time
}

// Touched reports whether the container is one of the batches so far. An update without a batch has changed none: it is
// only planned, its plan was dropped, or its first batch waits for the restart of a container.
func (s *State) Touched(container string) bool {
	return slices.ContainsFunc(s.ContainerBatchesRecord, func(b Batch) bool { return slices.Contains(b.Containers, container) })
}

// LastWrite is the moment of the last batch.
func (s *State) LastWrite() time.Time {
	if n := len(s.ContainerBatchesRecord); n > 0 {
		return s.ContainerBatchesRecord[n-1].Timestamp.Time
	}
	return s.UpdateTimestamp.Time
}

// Next has the changes that later batches will write.
func (s *State) Next() Changes {
	return Changes{
		Images:    s.NextContainerImages,
		Resources: s.NextContainerResources,
		Metadata:  s.NextContainerRefMetadata,
		Restarts:  sets.New(s.NextContainerRestarts...),
	}
}

// HasNext reports whether a later batch has changes to write.
func (s *State) HasNext() bool {
	return len(s.NextContainerImages)+len(s.NextContainerResources)+len(s.NextContainerRefMetadata)+len(s.NextContainerRestarts) > 0
}

// Changes has the changes that the update begins with.
func (g *Grace) Changes() Changes {
	return Changes{
		Images:    g.ContainerImages,
		Resources: g.ContainerResources,
		Metadata:  g.ContainerRefMetadata,
		Restarts:  sets.New(g.ContainerRestarts...),
	}
}

// State is the state of the update whose grace period begins now.
func (g *Grace) State(now metav1.Time) *State {
	return &State{
		Revision:              g.Revision,
		UpdateTimestamp:       now,
		UpdateEnvFromMetadata: g.UpdateEnvFromMetadata,
		UpdateImages:          len(g.ContainerImages) > 0,
		UpdateResources:       len(g.ContainerResources) > 0,
	}
}
