package statefulset

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/frame"
)

// fillTimeout is how long the first pass that asks for storage classes waits for their cache.
const fillTimeout = 2 * time.Second

// classes knows the storage classes. Few sets need them: the cache of them is made for the first set with claims that
// grow with its updates.
type classes struct{ asked atomic.Bool }

// expandable returns for every storage class whether it allows expansion.
func (c *classes) expandable(ctx context.Context, from *frame.Controller) (map[string]bool, error) {
	if err := c.fill(ctx, from.Cache); err != nil {
		return nil, err
	}
	all, err := fastclient.All[storagev1.StorageClass](ctx, from.Reader, "")
	if err != nil {
		return nil, err
	}
	found := make(map[string]bool, len(all))
	for _, class := range all {
		found[class.Name] = class.AllowVolumeExpansion != nil && *class.AllowVolumeExpansion
	}
	return found, nil
}

// fill begins to fill the cache, and waits a little for it the first time. Without permission to
// list it is never filled, and no pass waits for that.
func (c *classes) fill(ctx context.Context, into cache.Cache) error {
	patience := time.Duration(0)
	if c.asked.CompareAndSwap(false, true) {
		patience = fillTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch err := optional.Sync(ctx, into, &storagev1.StorageClass{}); {
	case errors.Is(err, optional.ErrNotSynced):
		return errors.New("the StorageClasses have yet to be loaded; the operator needs permission to list them (component resize)")
	case err != nil:
		return fmt.Errorf("cache StorageClasses: %w", err)
	}
	return nil
}
