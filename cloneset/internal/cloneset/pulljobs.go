package cloneset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/execute"
	"github.com/flotilla-project/flotilla/core/fastclient"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

const (
	// lookInterval is how often discovery is asked for image pull jobs at most.
	lookInterval = time.Minute
	// fillTimeout is how long a pass waits for the cache of image pull jobs, at most once in lookInterval.
	fillTimeout = 2 * time.Second
	// pullRetry is when a failed attempt to create or delete jobs is repeated, and pullStaleRetry when
	// the world had only moved on.
	pullRetry      = 30 * time.Second
	pullStaleRetry = time.Second
)

// Discovery says what a version of an API group serves. A client-go discovery client is one.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// pullJobs knows whether the cluster serves ImagePullJob, which may be installed or removed at any
// time, and which jobs a set controls. Until the kind is seen, nothing of it is cached; then only the
// metadata.
type pullJobs struct {
	discovery Discovery
	cache     cache.Cache
	clock     clock.PassiveClock

	looking sync.Mutex
	looked  time.Time
	doubt   bool   // a write failed: the kind may be gone
	version string // the version that is served and cached, empty for none
	indexed bool   // its cache has the index of owners
	problem string // why it is not known or not cached

	mu     sync.Mutex
	recent map[types.NamespacedName]pullAttempt
}

// pullAttempt is what happened last for a set.
type pullAttempt struct {
	deleted  []types.UID // jobs that the cache may still show
	revision string      // the update revision for which the rest holds
	told     bool
	retryAt  time.Time
}

// of is what a plan must know. It costs a look at the cache, and in a rollout at most once in
// lookInterval a look at discovery, as long as the kind is not there.
func (j *pullJobs) of(ctx context.Context, s *plan.Snapshot) plan.PullJobs {
	if s.Chosen.Update == nil || s.Chosen.Current == nil {
		return plan.PullJobs{}
	}
	var known plan.PullJobs
	known.Version, known.Problem = j.look(ctx, s.Chosen.Update.Name != s.Chosen.Current.Name)
	if known.Version != "" && known.Problem == "" {
		owned, err := j.owned(ctx, known.Version, s.Set)
		if err != nil {
			known.Problem = err.Error()
		}
		known.Owned = owned
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	last := j.recent[client.ObjectKeyFromObject(s.Set)]
	known.Owned = slices.DeleteFunc(known.Owned, func(job *metav1.PartialObjectMetadata) bool { return slices.Contains(last.deleted, job.UID) })
	if last.revision == s.Chosen.Update.Name {
		known.Told, known.RetryAt = last.told, last.retryAt
	}
	return known
}

func (j *pullJobs) owned(ctx context.Context, version string, set *v1beta1.CloneSet) ([]*metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout) // another pass may have dropped the cache just now
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(contract.ImagePullJobGVK(version))
	err := j.cache.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingFields{fastclient.OwnerIndex: string(set.UID)})
	if err != nil {
		return nil, fmt.Errorf("list image pull jobs: %w", err)
	}
	var owned []*metav1.PartialObjectMetadata
	for i := range list.Items {
		if job := &list.Items[i]; metav1.IsControlledBy(job, set) {
			job.SetGroupVersionKind(contract.ImagePullJobGVK(version))
			owned = append(owned, job)
		}
	}
	return owned, nil
}

// look is the served version and why jobs cannot be read, as far as known. A set without a rollout
// has no need to know more than was known before.
func (j *pullJobs) look(ctx context.Context, needed bool) (version, problem string) {
	j.looking.Lock()
	defer j.looking.Unlock()
	now := j.clock.Now()
	settled := j.problem == "" && (!needed || j.version != "" && !j.doubt)
	if !j.looked.IsZero() && (settled || now.Sub(j.looked) < lookInterval) {
		return j.version, j.problem
	}
	j.looked, j.doubt, j.problem = now, false, ""
	if err := j.renew(ctx); err != nil {
		j.problem = err.Error()
	}
	return j.version, j.problem
}

// renew asks discovery, and fills or drops the cache accordingly.
func (j *pullJobs) renew(ctx context.Context) error {
	served, err := j.served()
	if err != nil {
		return err
	}
	if served != j.version {
		log.FromContext(ctx).Info("looked for image pull jobs", "served", served, "before", j.version)
		if err := j.drop(ctx); err != nil {
			return err
		}
		j.version = served
	}
	if served == "" {
		return nil
	}
	return j.fill(ctx)
}

func (j *pullJobs) drop(ctx context.Context) error {
	if j.version == "" {
		return nil
	}
	j.indexed = false
	if err := j.cache.RemoveInformer(ctx, anyPullJob(j.version)); err != nil {
		return fmt.Errorf("drop the cache of image pull jobs: %w", err)
	}
	return nil
}

// fill starts the cache and waits a little until it is filled. Without permission to list it never
// is; no rollout may wait for that.
func (j *pullJobs) fill(ctx context.Context) error {
	kind := anyPullJob(j.version)
	if !j.indexed {
		if err := fastclient.IndexOwners(ctx, j.cache, kind); err != nil {
			return err
		}
		j.indexed = true
	}
	informer, err := j.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
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

func anyPullJob(version string) *metav1.PartialObjectMetadata {
	kind := &metav1.PartialObjectMetadata{}
	kind.SetGroupVersionKind(contract.ImagePullJobGVK(version))
	return kind
}

// served is the best version in which the kind is served, empty when it is not.
func (j *pullJobs) served() (string, error) {
	for _, version := range contract.ImagePullJobVersions() {
		list, err := j.discovery.ServerResourcesForGroupVersion(contract.ImagePullJobGVK(version).GroupVersion().String())
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

// pullAhead writes what the plan wants aside and tells the user. What goes wrong holds up nothing; it
// returns when to try again.
func (r *Reconciler) pullAhead(ctx context.Context, snap plan.Snapshot, todo plan.Plan) time.Duration {
	if !r.Gates.PreDownload || snap.Chosen.Update == nil {
		return 0
	}
	done := r.Executor.Run(ctx, snap.Set, todo.Aside)
	r.Events.Tell(snap.Set, nil, &done)
	retry := retryOf(done)
	if retry > 0 {
		log.FromContext(ctx).Info("pulling images ahead did not succeed", "retryAfter", retry, "error", firstError(done))
	}
	deleted := deletedIn(done)
	if retry > 0 || todo.ExplainsPulls() || len(deleted) > 0 {
		r.pulls.remember(client.ObjectKeyFromObject(snap.Set), pullAttempt{
			deleted:  deleted,
			revision: snap.Chosen.Update.Name,
			told:     snap.PullJobs.Told || todo.ExplainsPulls(),
			retryAt:  snap.Now.Add(retry),
		}, retry > 0)
	}
	return retry
}

// retryOf is 0 when everything was written.
func retryOf(done execute.Outcome) time.Duration {
	if done.Err != nil || len(done.Blocked) > 0 {
		return pullRetry
	}
	if done.Stale > 0 || done.Ended {
		return pullStaleRetry
	}
	return 0
}

func deletedIn(done execute.Outcome) []types.UID {
	var deleted []types.UID
	for _, result := range done.Results {
		if result.State == execute.Done && result.Action.Verb == action.Delete {
			deleted = append(deleted, result.Action.Object.GetUID())
		}
	}
	return deleted
}

func firstError(done execute.Outcome) error {
	for _, result := range done.Results {
		if result.Err != nil {
			return result.Err
		}
	}
	return done.Err
}

func (j *pullJobs) remember(name types.NamespacedName, last pullAttempt, doubt bool) {
	if doubt {
		j.looking.Lock()
		j.doubt = true
		j.looking.Unlock()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.recent[name] = last
}

func (j *pullJobs) forget(name types.NamespacedName) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.recent, name)
}
