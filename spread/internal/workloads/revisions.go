package workloads

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// revisionAnnotation is on a Deployment and on its newest ReplicaSet.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// update is the revision of new pods of a CloneSet at a generation.
type update struct {
	generation int64
	revision   string
}

// Latest returns the revision of new pods; empty while it is not known, as between an edit of a Deployment and its new
// ReplicaSet, or before the controller of a CloneSet has seen the edit.
func (r *Reader) Latest(
	ctx context.Context, workload *metav1.PartialObjectMetadata, children []*metav1.PartialObjectMetadata, versioned subsets.Versioned,
) (string, error) {
	if workload.GroupVersionKind().GroupKind() == CloneSet && versioned.Of(CloneSet) {
		return r.updateRevision(ctx, workload)
	}
	return latest(workload, children, versioned), nil
}

// Versions returns the revisions that a workload has, from it and the objects between it and its pods; nil if they do not
// show them.
func Versions(workload *metav1.PartialObjectMetadata, children []*metav1.PartialObjectMetadata) []string {
	switch workload.GroupVersionKind().GroupKind() {
	case ReplicaSet:
		return []string{subsets.RevisionOf(workload.Labels)}
	case Deployment:
		versions := []string{} // none: its first ReplicaSet is to come
		for _, child := range children {
			versions = append(versions, subsets.RevisionOf(child.Labels))
		}
		return versions
	}
	return nil
}

func latest(workload *metav1.PartialObjectMetadata, children []*metav1.PartialObjectMetadata, versioned subsets.Versioned) string {
	switch kind := workload.GroupVersionKind().GroupKind(); {
	case kind != Deployment && kind != ReplicaSet || !versioned.Of(kind):
		return v1beta1.VersionIgnored
	case kind == ReplicaSet:
		return subsets.RevisionOf(workload.Labels)
	}
	for _, o := range children {
		if o.DeletionTimestamp == nil && o.Annotations[revisionAnnotation] == workload.Annotations[revisionAnnotation] {
			return subsets.RevisionOf(o.Labels)
		}
	}
	return ""
}

// updateRevision reads a CloneSet from the server, once for each generation that its controller has seen.
func (r *Reader) updateRevision(ctx context.Context, workload *metav1.PartialObjectMetadata) (string, error) {
	if known, ok := r.updates.Get(workload.UID); ok && known.(update).generation == workload.Generation {
		return known.(update).revision, nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(workload.GroupVersionKind())
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(workload), object); err != nil {
		return "", fmt.Errorf("read %s %s: %w", workload.Kind, workload.Name, err)
	}
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	revision, _, _ := unstructured.NestedString(object.Object, "status", "updateRevision")
	if observed != object.GetGeneration() || revision == "" {
		return "", nil
	}
	known := update{observed, podstate.ShortHash(revision)}
	r.updates.Add(workload.UID, known)
	return known.revision, nil
}
