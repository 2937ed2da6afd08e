package statefulset

import (
	"context"
	"errors"
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// fillTimeout is how long the first pass that asks for storage classes waits for their cache.
const fillTimeout = 2 * time.Second

// expandable says of every storage class whether it allows expansion. Nobody else needs storage
// classes: the cache of them is made for the first set whose claims grow with its updates.
func (r *Reconciler) expandable(ctx context.Context, s plan.Snapshot) (map[string]bool, error) {
	if !r.Gates.AutoResizePVC || s.Set.Spec.VolumeClaimUpdateStrategy.Type != v1beta1.OnPodRollingUpdate {
		return nil, nil
	}
	if err := r.fillClasses(ctx); err != nil {
		return nil, err
	}
	classes, err := fastclient.All[storagev1.StorageClass](ctx, r.Reader, "")
	if err != nil {
		return nil, err
	}
	found := make(map[string]bool, len(classes))
	for _, class := range classes {
		found[class.Name] = class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion
	}
	return found, nil
}

// fillClasses begins to fill the cache, and waits a little for it the first time. Without permission to
// list it is never filled, and no pass waits for that.
func (r *Reconciler) fillClasses(ctx context.Context) error {
	patience := time.Duration(0)
	if r.classesAsked.CompareAndSwap(false, true) {
		patience = fillTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch err := optional.Fill(ctx, r.cache, &storagev1.StorageClass{}); {
	case errors.Is(err, optional.ErrNotFilled):
		return errors.New("the cache of storage classes cannot be filled: may the operator list them?")
	case err != nil:
		return fmt.Errorf("cache storage classes: %w", err)
	}
	return nil
}
