package pulljobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/events"
	"github.com/flotilla-project/flotilla/core/controllers/execute"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
)

const (
	// retryInterval is the pause after a failed attempt to create or delete jobs, and staleRetryInterval after one that
	// only met a newer version of the objects.
	retryInterval      = 30 * time.Second
	staleRetryInterval = time.Second
)

// Options are the settings of Jobs.
type Options struct {
	// Discovery looks for the kind.
	Discovery optional.Discovery
	// Cache is the manager's cache.
	Cache cache.Cache
	// Executor writes jobs, Events reports them.
	Executor *execute.Executor
	Events   *events.Recorder
	// Clock is the source of the time.
	Clock clock.PassiveClock
}

// Jobs manages the image pull jobs of workloads. It is safe for concurrent use.
type Jobs struct {
	kind     kind
	executor *execute.Executor
	events   *events.Recorder

	recent memory.Objects[attempt]
}

// attempt is the last attempt for a workload.
type attempt struct {
	deleted  []types.UID // jobs that the cache may still show
	revision string      // the update revision for which the rest holds
	told     bool
	retryAt  time.Time
	round    predownload.Round
}

// New returns Jobs that knows nothing yet.
func New(o Options) *Jobs {
	return &Jobs{
		kind: kind{
			Kind:      optional.ImagePullJobs(),
			discovery: o.Discovery,
			cache:     o.Cache,
			clock:     o.Clock,
		},
		executor: o.Executor,
		events:   o.Events,
	}
}

// Of returns the known facts of the jobs of a workload with the update revision. It reads the cache and, while the kind
// is not served, in a rollout asks discovery at most once a minute.
func (j *Jobs) Of(ctx context.Context, owner client.Object, update string, inRollout bool) predownload.Jobs {
	var known predownload.Jobs
	known.Version, known.Problem = j.kind.look(ctx, inRollout)
	if known.Version != "" && known.Problem == "" {
		owned, err := j.owned(ctx, known.Version, owner)
		if err != nil {
			known.Problem = err.Error()
		}
		known.Owned = owned
	}
	last, _ := j.recent.Get(memory.KeyOf(owner))
	known.Owned = slices.DeleteFunc(known.Owned, func(job *predownload.Job) bool { return slices.Contains(last.deleted, job.UID) })
	if last.revision == update {
		known.ProblemReported = last.told
		known.RetryAt = last.retryAt
		known.Round = last.round
	}
	return known
}

func (j *Jobs) owned(ctx context.Context, version string, owner client.Object) ([]*predownload.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout) // another pass may have just dropped the cache
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(contract.ImagePullJobGVK(version))
	err := j.kind.cache.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingFields{fastclient.OwnerIndex: string(owner.GetUID())})
	if err != nil {
		return nil, fmt.Errorf("list image pull jobs: %w", err)
	}
	var owned []*predownload.Job
	for i := range list.Items {
		if job := &list.Items[i]; metav1.IsControlledBy(job, owner) {
			owned = append(owned, predownload.ReadJob(job))
		}
	}
	return owned, nil
}

// Run writes the jobs that a plan wants for the update revision and sends events. Errors delay nothing; it returns when
// to try again, 0 when all was written. The plan itself reports the notices of the wish.
func (j *Jobs) Run(ctx context.Context, owner client.Object, update string, wish predownload.JobPlan) time.Duration {
	done := j.executor.Run(ctx, owner, wish.Steps)
	j.events.Record(owner, nil, &done)
	return j.Executed(ctx, owner, update, wish, done)
}

// Executed remembers the outcome of the jobs that a plan wants for the update revision. It returns when to try again, 0
// when all was written.
func (j *Jobs) Executed(ctx context.Context, owner client.Object, update string, wish predownload.JobPlan, done progress.Result) time.Duration {
	again := retryOf(done)
	if again > 0 {
		log.FromContext(ctx).Info("pulling images before the update failed", "retryAfter", again, "error", firstError(done))
		j.kind.requestRecheck()
	}
	deleted := deletedIn(done)
	round := wish.Round
	if again > 0 {
		round = nil // it has not begun, or not whole
	}
	if again > 0 || wish.ReportsProblem || len(deleted) > 0 || round != nil {
		j.remember(memory.KeyOf(owner), update, func(now *attempt) {
			now.told = now.told || wish.ReportsProblem
			if again > 0 || len(deleted) > 0 {
				now.retryAt = j.kind.clock.Now().Add(again)
			}
			if len(deleted) > 0 {
				now.deleted = deleted
			}
			if round != nil {
				now.round = *round
			}
		})
	}
	return again
}

// remember changes the memory of a workload with the update revision.
func (j *Jobs) remember(owner memory.Key, update string, change func(*attempt)) {
	j.recent.Change(owner, func(last attempt) (attempt, bool) {
		if last.revision != update {
			last = attempt{revision: update, deleted: last.deleted}
		}
		change(&last)
		return last, true
	})
}

// Forget drops the memory of a workload.
func (j *Jobs) Forget(name types.NamespacedName) { j.recent.Forget(name) }

func retryOf(done progress.Result) time.Duration {
	if done.Err != nil || len(done.Blocked) > 0 {
		return retryInterval
	}
	if done.Stale > 0 || done.Incomplete {
		return staleRetryInterval
	}
	return 0
}

func deletedIn(done progress.Result) []types.UID {
	var deleted []types.UID
	for _, result := range done.Outcomes {
		if result.State == progress.Done && result.Action.Verb == action.Delete {
			deleted = append(deleted, result.Action.Object.GetUID())
		}
	}
	return deleted
}

func firstError(done progress.Result) error {
	for _, result := range done.Outcomes {
		if result.Err != nil {
			return result.Err
		}
	}
	return done.Err
}
