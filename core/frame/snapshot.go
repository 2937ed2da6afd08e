package frame

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/internal/frame/meter"
	"github.com/flotilla-project/flotilla/core/internal/frame/orphans"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/model"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// Look reads one set and all that belongs to it with the parts of the controller, and plans. The error satisfies
// IsNotFound only when the set itself is gone.
func (w *Workload[T, P, S]) Look(ctx context.Context, c *Controller, name types.NamespacedName) (Pass[S], error) {
	set, err := fastclient.Get[T, P](ctx, c.Reader, name)
	if err != nil {
		return Pass[S]{}, err
	}
	shared, err := w.read(ctx, c, set)
	if err != nil {
		return Pass[S]{}, err
	}
	seen, err := w.Snapshot(ctx, c, shared)
	if err != nil {
		return Pass[S]{}, err
	}
	began := c.Clock.Now()
	todo := w.Compute(seen)
	c.Meter.Planned(c.Clock.Since(began))
	return w.pass(c, shared, seen, todo), nil
}

// pass returns the pass that carries out the plan: lost pods are tracked, outcomes are counted, and image pull jobs are
// written.
func (w *Workload[T, P, S]) pass(c *Controller, shared model.Snapshot[P], seen S, todo model.Plan) Pass[S] {
	p := Pass[S]{Seen: seen, Todo: todo}
	p.Object, p.Plan, p.Err = shared.Set, todo.Plan, todo.Err
	p.Do = func(_ context.Context, execute func() progress.Result) progress.Result {
		done := execute()
		c.Executed(shared.Set, done.Outcomes)
		return done
	}
	p.Status = func(done action.Failures) client.Object {
		after := shared.Set.DeepCopyObject().(P)
		w.Status(after, seen, todo, done)
		observe(c, shared, todo, w.Describe(after))
		return after
	}
	if shared.Chosen.Update == nil {
		return p
	}
	p.Update = shared.Chosen.Update.Name
	p.After = func(ctx context.Context, _ bool) time.Duration {
		return c.PullJobs.Run(ctx, shared.Set, p.Update, todo.PreDownload)
	}
	return p
}

// observe passes the observation of the set, with its next status, to the meter.
func observe[P client.Object](c *Controller, shared model.Snapshot[P], todo model.Plan, next Set) {
	seen := meter.Observation{
		Pods:           shared.Pods,
		Wanted:         ptr.Deref(next.Replicas, 1),
		Available:      next.Available,
		MaxUnavailable: todo.MaxUnavailable,
	}
	if update := shared.Chosen.Update; update != nil {
		seen.Update = podstate.ShortHash(update.Name)
	}
	if ready := conditions.Get(next.Conditions, conditions.Ready); ready != nil && ready.Status == corev1.ConditionFalse {
		seen.WaitsFor = ready.Reason
	}
	c.Meter.Observed(memory.KeyOf(shared.Set), seen, c.Clock.Now())
}

// read reads the facts of a set that all kinds need, from the cache. If nothing belongs to the set, the list is empty.
func (w *Workload[T, P, S]) read(ctx context.Context, c *Controller, set P) (model.Snapshot[P], error) {
	now := c.Clock.Now()
	described := w.Describe(set)
	s := model.Snapshot[P]{
		Set:        set,
		Owner:      *metav1.NewControllerRef(set, w.Kind),
		Now:        now,
		Seed:       Seed(set.GetUID(), now),
		NodeLabels: c.NodeLabels(ctx),
		Claim:      func(name string) *corev1.PersistentVolumeClaim { return c.Claim(ctx, set.GetNamespace(), name) },
	}
	var err error
	if s.Pods, err = fastclient.Controlled[corev1.Pod](ctx, c.Reader, set); err != nil {
		return s, fmt.Errorf("list pods: %w", err)
	}
	s.Refusals = c.KnownRefusals(set, s.Pods, described.MinReadySeconds, now)
	if s.Revisions, err = fastclient.Controlled[appsv1.ControllerRevision](ctx, c.Reader, set); err != nil {
		return s, fmt.Errorf("list revisions: %w", err)
	}
	if s.OrphanRevisions, err = c.History.Orphans(ctx, set, described.Selector); err != nil {
		return s, err
	}
	lost, err := c.Orphans.Find(ctx, w.search(set, described, s.Pods), now)
	if err != nil {
		return s, fmt.Errorf("find lost pods: %w", err)
	}
	s.Pods = append(s.Pods, lost.Own...)
	s.Orphans = lost.Orphans
	s.TakenNames = lost.Taken
	if s.Chosen, err = w.choose(ctx, c, described, s); err != nil {
		return s, err
	}
	if chosen := s.Chosen; w.PreDownload && chosen.Update != nil && chosen.Current != nil {
		s.PullJobs = c.PullJobs.Of(ctx, set, chosen.Update.Name, described.InRollout || chosen.Update.Name != chosen.Current.Name)
	}
	return s, nil
}

// search describes the pods that are not in the cache and could be the set's.
func (w *Workload[T, P, S]) search(set P, described Set, cached []*corev1.Pod) orphans.Search {
	search := orphans.Search{
		Owner:    set,
		Selector: described.Selector,
		Pods:     cached,
		Replicas: described.Replicas,
		Counted:  described.Pods,
		Observed: described.ObservedGeneration,
	}
	if w.IsMember != nil {
		search.Wanted = func(pod *corev1.Pod) bool { return w.IsMember(set, pod.Name) }
	}
	return search
}

// choose returns the revision of the set's template.
func (w *Workload[T, P, S]) choose(ctx context.Context, c *Controller, described Set, s model.Snapshot[P]) (revision.Choice, error) {
	in := revision.Input{
		Owner:             s.Set,
		Kind:              w.Kind,
		Template:          described.Template,
		DefaultPullPolicy: w.DefaultPullPolicy,
		Same:              w.SameTemplate,
		HashLabel:         w.HashLabel,
		Owned:             s.Revisions,
		Orphans:           s.OrphanRevisions,
		Current:           described.CurrentRevision,
		CollisionCount:    ptr.Deref(described.CollisionCount, 0),
	}
	if w.HashClaims {
		hash, err := revision.ClaimsHash(described.ClaimTemplates)
		if err != nil {
			return revision.Choice{}, fmt.Errorf("hash claim templates: %w", err)
		}
		in.ClaimsHash = &hash
	}
	return c.History.Choose(ctx, in, podtemplate.ClaimVolumes(described.ClaimTemplates)...)
}
