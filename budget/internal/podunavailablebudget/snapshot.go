package podunavailablebudget

import (
	"context"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/later"
	"github.com/flotilla-project/flotilla/core/plan/memory"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget/plan"
)

// questions is how many pods the server is asked about at once.
const questions = 8

// Snapshots reads the state of budgets. Its memory delays the end of grants and saves requests; a new process does without
// it.
type Snapshots struct {
	cover cover.Reader
	live  client.Reader
	clock clock.PassiveClock
	// follow is told the objects that the numbers of a budget follow from.
	follow func(ctx context.Context, budget types.NamespacedName, on map[cover.Object]bool) error
	memory *memory.Objects[remembered]
}

// NewSnapshots returns Snapshots that remember nothing yet. live reads pods from the server.
func NewSnapshots(c cover.Reader, live client.Reader, clock clock.PassiveClock) *Snapshots {
	return &Snapshots{
		cover:  c,
		live:   live,
		clock:  clock,
		memory: &memory.Objects[remembered]{},
		follow: func(context.Context, types.NamespacedName, map[cover.Object]bool) error { return nil },
	}
}

// remembered is the memory of a budget between passes.
type remembered struct {
	sights       disruption.Sights
	looks        plan.Looks
	replacements plan.Replacements
}

// Read reads the state of one budget, without the refusals of its writes.
func (r *Snapshots) Read(ctx context.Context, b *v1beta1.PodUnavailableBudget) (plan.Snapshot, error) {
	key := client.ObjectKeyFromObject(b)
	s := plan.Snapshot{Budget: b, Now: r.clock.Now()}
	err := r.readWorkloads(ctx, &s, key)
	if err != nil {
		return s, err
	}
	return s, r.look(ctx, &s, key)
}

// readWorkloads reads the pods of the budget and the workloads that they belong to. Changes of these workloads bring
// further passes.
func (r *Snapshots) readWorkloads(ctx context.Context, s *plan.Snapshot, key types.NamespacedName) error {
	t := s.Budget.Spec.TargetReference
	pods, target, err := r.cover.Pods(ctx, s.Budget)
	if t != nil {
		if w, ok := cover.Unreadable(t, pods, err); ok {
			s.Pods = pods
			s.Workloads = []disruption.Workload{w}
			return nil
		}
	}
	if t != nil && apierrors.IsNotFound(err) {
		name := types.NamespacedName{Namespace: key.Namespace, Name: t.Name}
		return r.follow(ctx, key, map[cover.Object]bool{{Kind: cover.KindOf(t), Name: name}: true})
	}
	if err != nil {
		return later.OfAnother(fmt.Errorf("read the pods of budget %s: %w", key, err))
	}
	workloads, on, err := r.cover.Workloads(ctx, pods, target)
	if err != nil {
		return later.OfAnother(fmt.Errorf("read the workloads of budget %s: %w", key, err))
	}
	s.Pods, s.Workloads = pods, workloads
	return r.follow(ctx, key, on)
}

// look asks the server about pods with new changes and about pods with grants that would end. It keeps the answers until
// the cache shows them.
func (r *Snapshots) look(ctx context.Context, s *plan.Snapshot, key types.NamespacedName) error {
	known, _ := r.memory.Get(memory.KeyOf(s.Budget))
	st := &s.Budget.Status
	s.Sights = known.sights.Next(st, s.Now)
	s.Replacements = known.replacements
	cached := func(name string) *corev1.Pod {
		pod, err := fastclient.Get[corev1.Pod](ctx, r.cover.Cache, types.NamespacedName{Namespace: key.Namespace, Name: name})
		if err != nil {
			return nil
		}
		return pod
	}
	s.Looks = known.looks.StillNeeded(cached)
	pods := map[string]*corev1.Pod{}
	for _, g := range disruption.Grants(st) {
		if pod := s.Looks.Newest(g.Pod, cached(g.Pod)); pod != nil {
			pods[g.Pod] = pod
		}
	}
	asked, err := r.ask(ctx, s.LookAt(pods), key.Namespace)
	if err != nil {
		return err
	}
	looks := plan.Looks{}
	for name, pod := range asked {
		looks[name] = plan.NewLook(pod, st.PodUIDs[name], cached(name))
	}
	maps.Copy(s.Looks, looks)
	s.Replacements = s.Replacements.Next(st, looks, s.Now)
	r.memory.Set(memory.KeyOf(s.Budget), remembered{
		sights:       s.Sights,
		looks:        s.Looks,
		replacements: s.Replacements,
	})
	return nil
}

// ask returns the pods of the names as the server has them, nil for one that it has not.
func (r *Snapshots) ask(ctx context.Context, names []string, namespace string) (map[string]*corev1.Pod, error) {
	pods := make([]*corev1.Pod, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(questions)
	for i, name := range names {
		group.Go(func() error {
			pod := &corev1.Pod{}
			err := r.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, pod)
			switch {
			case err == nil:
				pods[i] = pod
			case !apierrors.IsNotFound(err):
				return fmt.Errorf("get pod %s: %w", name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err //nolint:wrapcheck // it is one of those above
	}
	all := make(map[string]*corev1.Pod, len(names))
	for i, name := range names {
		all[name] = pods[i]
	}
	return all, nil
}
