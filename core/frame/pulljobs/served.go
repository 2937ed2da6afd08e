package pulljobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
)

const (
	// lookInterval is how often discovery is asked for the kind at most.
	lookInterval = time.Minute
	// fillTimeout is how long a pass waits for the cache of jobs, at most once in lookInterval.
	fillTimeout = 2 * time.Second
)

// Discovery says what a version of an API group serves. A client-go discovery client is one.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// kind knows whether and how ImagePullJob is served.
type kind struct {
	discovery Discovery
	cache     cache.Cache
	clock     clock.PassiveClock

	mu      sync.Mutex
	looked  time.Time
	doubt   bool   // a write failed: the kind may be gone
	version string // the version that is served and cached, empty for none
	indexed bool   // its cache has the index of owners
	problem string // why it is not known or not cached
}

// look is the served version and why jobs cannot be read, as far as known. A workload without a rollout
// has no need to know more than was known before.
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
	served, err := k.served()
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
	if err := k.cache.RemoveInformer(ctx, anyJob(k.version)); err != nil {
		return fmt.Errorf("drop the cache of image pull jobs: %w", err)
	}
	return nil
}

// fill starts the cache and waits a little until it is filled. Without permission to list it never
// is; no rollout may wait for that.
func (k *kind) fill(ctx context.Context) error {
	job := anyJob(k.version)
	if !k.indexed {
		if err := fastclient.IndexOwners(ctx, k.cache, job); err != nil {
			return err
		}
		k.indexed = true
	}
	informer, err := k.cache.GetInformer(ctx, job, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("cache image pull jobs: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("the cache of image pull jobs cannot be filled")
	}
	return nil
}

func anyJob(version string) *metav1.PartialObjectMetadata {
	job := &metav1.PartialObjectMetadata{}
	job.SetGroupVersionKind(contract.ImagePullJobGVK(version))
	return job
}

// served is the best version in which the kind is served, empty when it is not.
func (k *kind) served() (string, error) {
	for _, version := range contract.ImagePullJobVersions() {
		list, err := k.discovery.ServerResourcesForGroupVersion(contract.ImagePullJobGVK(version).GroupVersion().String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("look for image pull jobs: %w", err)
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == contract.ImagePullJobResource }) {
			return version, nil
		}
	}
	return "", nil
}
