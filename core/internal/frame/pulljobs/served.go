package pulljobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
)

const (
	// lookInterval is the shortest time between two discovery requests.
	lookInterval = time.Minute
	// syncTimeout is how long a pass waits for the cache of jobs to sync, at most once in lookInterval.
	syncTimeout = 2 * time.Second
)

var errNotFilled = errors.New("filling the cache of image pull jobs failed")

// kind is the state of ImagePullJob: whether it is served, and cached.
type kind struct {
	optional.Kind
	discovery optional.Discovery
	cache     cache.Cache
	clock     clock.PassiveClock

	mu      sync.Mutex
	looked  time.Time
	recheck bool   // a write failed: the kind may be gone
	version string // the version that is served and cached, empty for none
	indexed bool   // its cache has the index of owners
	problem string // why its state is unknown or it is not cached
	filling bool   // the problem is that its cache has not synced yet
}

// object returns an empty job of a version. The cache holds the fields of it that fastclient.Trim leaves.
func (k *kind) object(version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(k.WithVersion(version))
	return o
}

// look returns the served version and why jobs cannot be read, as far as known. Without a rollout the known result is
// enough.
func (k *kind) look(ctx context.Context, needed bool) (version, problem string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	if k.filling && optional.Synced(ctx, k.cache, k.object(k.version)) {
		k.filling, k.problem = false, ""
	}
	settled := k.problem == "" && (!needed || k.version != "" && !k.recheck)
	if !k.looked.IsZero() && (settled || now.Sub(k.looked) < lookInterval) {
		return k.version, k.problem
	}
	k.looked = now
	k.recheck = false
	k.problem = ""
	k.filling = false
	if err := k.refresh(ctx); err != nil {
		k.problem = err.Error()
		k.filling = errors.Is(err, errNotFilled)
	}
	return k.version, k.problem
}

// requestRecheck makes the next look ask discovery again.
func (k *kind) requestRecheck() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recheck = true
}

// refresh asks discovery, and starts or drops the cache accordingly.
func (k *kind) refresh(ctx context.Context) error {
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
	return k.startCache(ctx)
}

func (k *kind) drop(ctx context.Context) error {
	if k.version == "" {
		return nil
	}
	k.indexed = false
	if err := k.cache.RemoveInformer(ctx, k.object(k.version)); err != nil {
		return fmt.Errorf("drop the cache of image pull jobs: %w", err)
	}
	return nil
}

// startCache starts the cache and waits a little until it has synced. Without permission to list it never does; no
// rollout may wait for that.
func (k *kind) startCache(ctx context.Context) error {
	job := k.object(k.version)
	if !k.indexed {
		if err := fastclient.IndexOwners(ctx, k.cache, job); err != nil {
			return err
		}
		k.indexed = true
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	switch err := optional.Sync(ctx, k.cache, job); {
	case errors.Is(err, optional.ErrNotSynced):
		return errNotFilled
	case err != nil:
		return fmt.Errorf("cache image pull jobs: %w", err)
	}
	return nil
}
