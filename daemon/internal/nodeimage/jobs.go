package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/contract"
)

// jobsPause lies between two looks for the kind ImagePullJob, which another module may install at any time.
const jobsPause = 30 * time.Second

// jobs knows the ImagePullJobs once their kind is served. Until then nothing is known of any.
type jobs struct {
	mapper meta.RESTMapper
	clock  clock.WithTicker
	cached atomic.Pointer[jobCache]
}

// jobCache is the cache of jobs in the version that is served.
type jobCache struct {
	cache   client.Reader
	version string
}

// uid is the UID of a job, empty when there is none; false when that is not known.
func (j *jobs) uid(ctx context.Context, name types.NamespacedName) (types.UID, bool) {
	from := j.cached.Load()
	if from == nil {
		return "", false
	}
	job := newJob(from.version)
	err := from.cache.Get(ctx, name, job, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return "", true
	}
	return job.UID, err == nil
}

// await waits until jobs are served, calls watch, and lets uid read the cache from then on.
func (j *jobs) await(ctx context.Context, from cache.Cache, watch func(*metav1.PartialObjectMetadata) error) error {
	for {
		version, err := j.served()
		if err != nil {
			log.FromContext(ctx).Error(err, "It is not known whether image pull jobs are served")
		}
		if version != "" {
			return j.follow(ctx, from, version, watch)
		}
		timer := j.clock.NewTimer(jobsPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

func (j *jobs) follow(ctx context.Context, from cache.Cache, version string, watch func(*metav1.PartialObjectMetadata) error) error {
	job := newJob(version)
	if err := watch(job); err != nil {
		return fmt.Errorf("watch image pull jobs: %w", err)
	}
	informer, err := from.GetInformer(ctx, job)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the manager ends
	}
	if err != nil {
		return fmt.Errorf("cache image pull jobs: %w", err)
	}
	if !informer.HasSynced() {
		return errors.New("cache image pull jobs: it is not filled")
	}
	j.cached.Store(&jobCache{cache: from, version: version})
	return nil
}

// served is the version of ImagePullJob that the cluster serves, or "".
func (j *jobs) served() (string, error) {
	mapping, err := j.mapper.RESTMapping(schema.GroupKind{Group: contract.AppsGroup, Kind: contract.ImagePullJobKind})
	switch {
	case meta.IsNoMatchError(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("discover image pull jobs: %w", err)
	}
	return mapping.GroupVersionKind.Version, nil
}

func newJob(version string) *metav1.PartialObjectMetadata {
	job := &metav1.PartialObjectMetadata{}
	job.SetGroupVersionKind(contract.ImagePullJobGVK(version))
	return job
}
