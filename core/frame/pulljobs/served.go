package pulljobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
)

const (
	// lookInterval is how often discovery is asked for the kind at most.
	lookInterval = time.Minute
	// fillTimeout is how long a pass waits for the cache of jobs, at most once in lookInterval.
	fillTimeout = 2 * time.Second
)

// kind knows whether and how ImagePullJob is served.
type kind struct {
	optional.Kind
	discovery optional.Discovery
	cache     cache.Cache
	clock     clock.PassiveClock

	mu      sync.Mutex
	looked  time.Time
	doubt   bool   // a write failed: the kind may be gone
	version string // the version that is served and cached, empty for none
	indexed bool   // its cache has the index of owners
	problem string // why it is not known or not cached
}

// look returns the served version and why jobs cannot be read, as far as known. A workload without a rollout has no
// need to know more than was known before.
func (k *kind) look(ctx context.Context, needed bool) (version, problem string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	settled := k.problem == "" && (!needed || k.version != "" && !k.doubt)
	if !k.looked.IsZero() && (settled || now.Sub(k.looked) < lookInterval) {
		return k.version, k.problem
	}
	k.looked, k.doubt, k.problem = now, false, ""
	if err := k.renew(ctx); err != nil {
		k.problem = err.Error()
	}
	return k.version, k.problem
}

// suspect has the next look ask discovery again.
func (k *kind) suspect() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.doubt = true
}

// renew asks discovery, and fills or drops the cache accordingly.
func (k *kind) renew(ctx context.Context) error {
	served, err := k.Served(k.discovery)
	if err != nil {
		return err
	}
	if served != k.version {
		log.FromContext(ctx).Info("looked for image pull jobs", "served", served, "before", k.version)
		if err := k.drop(ctx); err != nil {
			return err
		}
		k.version = served
	}
	if served == "" {
		return nil
	}
	return k.fill(ctx)
}

func (k *kind) drop(ctx context.Context) error {
	if k.version == "" {
		return nil
	}
	k.indexed = false
	if err := k.cache.RemoveInformer(ctx, k.Metadata(k.version)); err != nil {
		return fmt.Errorf("drop the cache of image pull jobs: %w", err)
	}
	return nil
}

// fill starts the cache and waits a little until it is filled. Without permission to list it never
// is; no rollout may wait for that.
func (k *kind) fill(ctx context.Context) error {
	job := k.Metadata(k.version)
	if !k.indexed {
		if err := fastclient.IndexOwners(ctx, k.cache, job); err != nil {
			return err
		}
		k.indexed = true
	}
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	switch err := optional.Fill(ctx, k.cache, job); {
	case errors.Is(err, optional.ErrNotFilled):
		return errors.New("the cache of image pull jobs cannot be filled")
	case err != nil:
		return fmt.Errorf("cache image pull jobs: %w", err)
	}
	return nil
}
