package statefulset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/frame"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// markIndex holds the UID of the set in a claim that is deleted with an ordinal of the set.
const markIndex = "deleteWhenScaled"

func indexMarks(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &corev1.PersistentVolumeClaim{}, markIndex, func(o client.Object) []string {
		if set := o.GetAnnotations()[v1beta1.DeleteWhenScaledAnnotation]; set != "" {
			return []string{set}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index PVCs by %s: %w", v1beta1.DeleteWhenScaledAnnotation, err)
	}
	return nil
}

// claimsOf lists the claims that the set owns, and those that are deleted with its ordinals, in the order of their names.
func claimsOf(ctx context.Context, c *frame.Controller, set *v1beta1.StatefulSet) ([]*corev1.PersistentVolumeClaim, error) {
	owned, err := fastclient.Owned[corev1.PersistentVolumeClaim](ctx, c.Reader, set.Namespace, set.UID)
	if err != nil {
		return nil, fmt.Errorf("list PVCs: %w", err)
	}
	marked, err := fastclient.ByIndex[corev1.PersistentVolumeClaim](ctx, c.Reader, set.Namespace, markIndex, string(set.UID))
	if err != nil {
		return nil, fmt.Errorf("list PVCs by %s: %w", v1beta1.DeleteWhenScaledAnnotation, err)
	}
	claims := slices.Concat(owned, marked)
	slices.SortFunc(claims, func(a, b *corev1.PersistentVolumeClaim) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(claims), nil
}
