package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/plan"
)

// jobsPause lies between two looks for the kind ImagePullJob, which another module may install at any time.
const jobsPause = 30 * time.Second

// goneAge is how long it is remembered that a job is gone. It never comes back: a new one has another UID.
const goneAge = 10 * time.Minute

// jobs knows the ImagePullJobs once their kind is served. Until then nothing is known of any.
type jobs struct {
	mapper meta.RESTMapper
	live   client.Reader
	clock  clock.WithTicker
	cached atomic.Pointer[jobCache]
	gone   answers[plan.Job]
}

// jobCache is the cache of jobs in the version that is served.
type jobCache struct {
	cache   client.Reader
	version string
}

// there says whether the job exists; the latter is false when that is not known. A cache that does not show the
// job may lag behind, so that only the server can say that it is gone: whoever wrote the tag had seen it.
func (j *jobs) there(ctx context.Context, job plan.Job) (there, known bool) {
	from := j.cached.Load()
	if from == nil {
		return false, false
	}
	shown := newJob(from.version)
	err := from.cache.Get(ctx, job.NamespacedName, shown, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil && shown.UID == job.UID:
		return true, true
	case err != nil && !apierrors.IsNotFound(err):
		return false, false
	}
	if _, gone := j.gone.recall(job, j.clock.Now()); gone {
		return false, true
	}
	if there, err = j.ask(ctx, from.version, job); err != nil {
		log.FromContext(ctx).Error(err, "It is not known whether an image pull job is gone")
		return false, false
	}
	if !there {
		j.gone.note(job, false, j.clock.Now())
	}
	return there, true
}

// ask asks the server with the permission to list, which the cache needs as well.
func (j *jobs) ask(ctx context.Context, version string, job plan.Job) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(contract.ImagePullJobGVK(version))
	err := j.live.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingFields{"metadata.name": job.Name})
	if err != nil {
		return false, fmt.Errorf("look for image pull job %s: %w", job, err)
	}
	return slices.ContainsFunc(list.Items, func(o metav1.PartialObjectMetadata) bool { return o.UID == job.UID }), nil
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
