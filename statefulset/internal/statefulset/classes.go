package statefulset

import (
	"context"
	"errors"
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

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
	informer, err := r.cache.GetInformer(ctx, &storagev1.StorageClass{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("cache storage classes: %w", err)
	}
	if r.classesAsked.CompareAndSwap(false, true) {
		ctx, cancel := context.WithTimeout(ctx, fillTimeout)
		defer cancel()
		toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	}
	if !informer.HasSynced() {
		return errors.New("the cache of storage classes cannot be filled: may the operator list them?")
	}
	return nil
}
