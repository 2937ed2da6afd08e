package podunavailablebudget

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/plan/memory"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget/plan"
	"github.com/flotilla-project/flotilla/budget/internal/wakeups"
)

// comparePause is how often a budget is compared with the others of its namespace at most.
const comparePause = 5 * time.Second

// overlaps compares budgets with the others of their namespaces, apart from the passes: it costs as much as the namespace
// has budgets, and may ask the API server about the targets of all of them. No grant depends on it.
type overlaps struct {
	asked *memory.Objects[time.Time] // for the last time
	found *memory.Objects[overlap]
	due   *wakeups.Queue[types.NamespacedName]
	into  wakeups.Requests // the queue of the controller
}

// overlap is another budget and a pod that both cover; empty if there is none.
type overlap struct{ other, pod string }

// newOverlaps returns overlaps of budgets that find returns, nil for one that is gone.
func newOverlaps(find func(context.Context, types.NamespacedName) (*v1beta1.PodUnavailableBudget, overlap, error)) *overlaps {
	o := &overlaps{asked: &memory.Objects[time.Time]{}, found: &memory.Objects[overlap]{}}
	o.due = wakeups.New(func(ctx context.Context, key types.NamespacedName) ([]reconcile.Request, error) {
		b, now, err := find(ctx, key)
		if err != nil || b == nil || !o.set(b, now) {
			return nil, err
		}
		return []reconcile.Request{{NamespacedName: key}}, nil
	})
	return o
}

// find returns the budget, and its overlap as the cache has it.
func find(reader cover.Reader) func(context.Context, types.NamespacedName) (*v1beta1.PodUnavailableBudget, overlap, error) {
	return func(ctx context.Context, key types.NamespacedName) (*v1beta1.PodUnavailableBudget, overlap, error) {
		b, err := fastclient.Get[v1beta1.PodUnavailableBudget](ctx, reader.Cache, key)
		if err != nil {
			return nil, overlap{}, client.IgnoreNotFound(err)
		}
		pods, err := podsOf(ctx, reader, b)
		if err != nil {
			return nil, overlap{}, fmt.Errorf("read the pods of budget %s: %w", key, err)
		}
		other, pod, err := reader.Overlap(ctx, b, pods)
		if err != nil {
			return nil, overlap{}, fmt.Errorf("compare budget %s with %s: %w", key, other, err)
		}
		return b, overlap{other, pod}, nil
	}
}

// podsOf returns the pods of the budget, as far as they are known where its target is not there or cannot be read.
func podsOf(ctx context.Context, reader cover.Reader, b *v1beta1.PodUnavailableBudget) ([]*corev1.Pod, error) {
	pods, _, err := reader.Pods(ctx, b)
	if t := b.Spec.TargetReference; t != nil && err != nil {
		if _, unreadable := cover.Unreadable(t, pods, err); unreadable || apierrors.IsNotFound(err) {
			return pods, nil
		}
	}
	return pods, err
}

// set remembers an overlap, and reports whether condition Conflict changes by it.
func (o *overlaps) set(b *v1beta1.PodUnavailableBudget, now overlap) bool {
	last, known := o.found.Get(memory.KeyOf(b))
	o.found.Set(memory.KeyOf(b), now)
	if known {
		return last != now
	}
	return now.pod != "" || meta.FindStatusCondition(b.Status.Conditions, disruption.ConditionConflict) != nil
}

// compare sets the last result in the snapshot. It also has the budget compared again, unless that was requested a moment
// ago: then it returns how long to wait before the next request.
func (o *overlaps) compare(s *plan.Snapshot) time.Duration {
	key := memory.KeyOf(s.Budget)
	last, known := o.found.Get(key)
	s.Shared = last.other
	s.SharedPod = last.pod
	s.SharedUnknown = !known
	asked, _ := o.asked.Get(key)
	if wait := asked.Add(comparePause).Sub(s.Now); wait > 0 {
		return max(wait, batch)
	}
	o.asked.Set(key, s.Now)
	o.due.Add(client.ObjectKeyFromObject(s.Budget), o.into, 0)
	return 0
}
