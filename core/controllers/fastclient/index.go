package fastclient

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the indexes. Each can also be the one field of client.MatchingFields.
const (
	// OwnerIndex holds the UIDs of all owners of an object.
	OwnerIndex = "ownerRefUID"
	// uncontrolledIndex holds "true" for objects without a controlling owner.
	uncontrolledIndex = "uncontrolled"
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
