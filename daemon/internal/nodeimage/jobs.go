package nodeimage

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/optional"

	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/plan"
)

// goneAge is how long it is remembered that a job is gone. It never comes back: a new one has another UID.
const goneAge = 10 * time.Minute

// jobs reads ImagePullJobs once their kind is served. Before that nothing is known of any.
type jobs struct {
	optional.Kind
	live   client.Reader
	clock  clock.PassiveClock
	cached atomic.Pointer[jobCache]
	gone   answers[plan.Job]
}

// jobCache is the cache of jobs in the served version.
type jobCache struct {
	cache   client.Reader
	version string
}

// there reports whether the job exists; the second value is false if that is unknown. A cache that does not show the
// job may lag, so only the server can confirm that it is gone: the writer of the tag had seen it.
func (j *jobs) there(ctx context.Context, job plan.Job) (there, known bool) {
	from := j.cached.Load()
	if from == nil {
		return false, false
	}
	shown := j.Metadata(from.version)
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
		log.FromContext(ctx).Error(err, "Failed to check whether an ImagePullJob was deleted")
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

// fill lets there read the cache of the jobs once it is full.
func (j *jobs) fill(ctx context.Context, from cache.Cache, version string) error {
	err := optional.Sync(ctx, from, j.Metadata(version))
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the manager ends
	}
	if err != nil {
		return fmt.Errorf("cache image pull jobs: %w", err)
	}
	j.cached.Store(&jobCache{cache: from, version: version})
	return nil
}
