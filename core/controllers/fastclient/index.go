package fastclient

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the indexes. Each can also be the one field of client.MatchingFields.
const (
	// OwnerIndex holds the UIDs of all owners of an object.
	OwnerIndex = "ownerRefUID"
	// uncontrolledIndex holds "true" for objects without a controlling owner.
	uncontrolledIndex = "uncontrolled"
	// NodeNameIndex holds the name of a pod's node; pods without a node are not in it.
	NodeNameIndex = "spec.nodeName"
	// ControllerIndex holds the name of the controlling owner of the kind that IndexController was given.
	ControllerIndex = ".metadata.controller"
)

// IndexOwners adds OwnerIndex to the informers of the objects' kinds.
func IndexOwners(ctx context.Context, indexer client.FieldIndexer, kinds ...client.Object) error {
	for _, kind := range kinds {
		if err := indexer.IndexField(ctx, kind, OwnerIndex, ownerUIDs); err != nil {
			return fmt.Errorf("index the owners of %T: %w", kind, err)
		}
	}
	return nil
}

// IndexUncontrolled adds uncontrolledIndex to the informers of the objects' kinds.
func IndexUncontrolled(ctx context.Context, indexer client.FieldIndexer, kinds ...client.Object) error {
	for _, kind := range kinds {
		err := indexer.IndexField(ctx, kind, uncontrolledIndex, func(o client.Object) []string {
			if metav1.GetControllerOfNoCopy(o) == nil {
				return []string{"true"}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("index %T without a controller: %w", kind, err)
		}
	}
	return nil
}

// IndexNodeName adds NodeNameIndex to the informer of pods.
func IndexNodeName(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.Pod{}, NodeNameIndex, func(o client.Object) []string {
		if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			return []string{pod.Spec.NodeName}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index pods by node: %w", err)
	}
	return nil
}

// IndexController adds ControllerIndex to the informers of the objects' kinds, for controlling
// owners of the API group and kind; the version does not matter.
func IndexController(ctx context.Context, indexer client.FieldIndexer, owner metav1.GroupKind, kinds ...client.Object) error {
	for _, kind := range kinds {
		err := indexer.IndexField(ctx, kind, ControllerIndex, func(o client.Object) []string {
			ref := metav1.GetControllerOfNoCopy(o)
			if ref == nil || ref.Kind != owner.Kind || groupOf(ref.APIVersion) != owner.Group {
				return nil
			}
			return []string{ref.Name}
		})
		if err != nil {
			return fmt.Errorf("index %T by controller: %w", kind, err)
		}
	}
	return nil
}

func ownerUIDs(o client.Object) []string {
	owners := o.GetOwnerReferences()
	if len(owners) == 0 {
		return nil
	}
	uids := make([]string, len(owners))
	for i := range owners {
		uids[i] = string(owners[i].UID)
	}
	return uids
}
