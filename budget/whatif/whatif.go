package whatif

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/workloads"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/admission"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
	"github.com/flotilla-project/flotilla/budget/internal/ledger"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget/plan"
)

// Budgets are the PodUnavailableBudgets of one world, with the settings of an operator without flags. They are for one
// goroutine, as the world is.
type Budgets struct {
	world     *cluster.World // nil until it is watched
	cover     cover.Reader
	webhook   admission.Pods
	snapshots *podunavailablebudget.Snapshots
	records   *ledger.Records
	known     map[types.UID]*State
}

// State is what has become of a budget.
type State struct {
	// Budget is its name.
	Budget types.NamespacedName
	// Status is the status that an operator would write.
	Status v1beta1.PodUnavailableBudgetStatus
	// Lowest are the numbers when least was left of the budget since the world is watched: the fewest available pods in
	// relation to those that must be.
	Lowest Level
	// Refused is how many writes were refused, without dry runs.
	Refused int
	// LastRefusal is the reason that was given for the last one.
	LastRefusal string
	// Err is why Status could not be renewed, such as owners that own each other; nil if it could. On a server the status
	// stays as it is then, too.
	Err error
}

// Level are numbers of a budget at one time.
type Level struct {
	// Available is how many pods were available. Pods with a grant do not count.
	Available int32
	// Desired is how many had to be.
	Desired int32
	// Total is how many pods the workloads wanted.
	Total int32
}

// left is how many more pods could go.
func (l Level) left() int32 { return l.Available - l.Desired }

// New returns the budgets of a world that is yet to be watched.
func New() *Budgets { return &Budgets{known: map[types.UID]*State{}} }

// Watch begins to count the budgets of a world, those that it has and those that are added. Numbers of an earlier time are no
// part of State.Lowest. A world that is watched already stays as it is.
func (b *Budgets) Watch(w *cluster.World) {
	if b.world != nil {
		return
	}
	b.world = w
	b.cover = cover.Reader{Cache: newCache(w), Targets: targets{Reader: workloads.NewReader(w)}}
	live := livePods{world: w}
	b.records = ledger.NewRecords(w)
	b.snapshots = podunavailablebudget.NewSnapshots(b.cover, live, w)
	b.webhook = admission.Pods{
		Cover:   b.cover,
		Ledger:  inMemory{b},
		Live:    live,
		Gates:   features.Defaults(featuregates.All()...),
		Refused: b.refused,
	}
	b.countAll(quiet(), "")
	w.OnEvent(b.see)
}

// States returns the states of all budgets that the world has had since it is watched, by namespace and name. A budget that is
// gone has its last one.
func (b *Budgets) States() []State {
	if b.world != nil {
		b.countAll(quiet(), "") // grants end without an event
	}
	all := make([]State, 0, len(b.known))
	for _, s := range b.known {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Budget.Namespace, b.Budget.Namespace), cmp.Compare(a.Budget.Name, b.Budget.Name))
	})
	return all
}

// refused counts a refusal.
func (b *Budgets) refused(r admission.Refusal) {
	s := b.known[r.Budget.UID]
	s.Refused++
	s.LastRefusal = r.Why
}

// see counts the budgets again that an event may concern.
func (b *Budgets) see(e cluster.Event) {
	ctx := quiet()
	switch {
	case e.Kind == v1beta1.PodUnavailableBudgetKind:
		if e.Type != cluster.Deleted {
			b.countAll(ctx, e.Object.GetNamespace())
		}
	case e.Kind == "Pod":
		b.seePod(ctx, e)
	case cluster.PlainKind(e.Object) == "Workload" && e.Object.GetNamespace() != "" && isEdited(e):
		b.countAll(ctx, e.Object.GetNamespace())
	}
}

func (b *Budgets) seePod(ctx context.Context, e cluster.Event) {
	after, _ := e.Object.(*corev1.Pod)
	before, _ := e.Old.(*corev1.Pod)
	if e.Type == cluster.Modified && !podunavailablebudget.CountsOtherwise(before, after) {
		return
	}
	seen := map[types.UID]bool{}
	for _, pod := range []*corev1.Pod{before, after} {
		if pod == nil {
			continue
		}
		covering, err := b.cover.Budgets(ctx, pod)
		if err != nil { // any of them may cover the pod
			covering = b.all(ctx, pod.Namespace)
		}
		for _, one := range covering {
			if !seen[one.UID] {
				seen[one.UID] = true
				b.count(ctx, one)
			}
		}
	}
}

// isEdited reports whether a workload may want other pods than before.
func isEdited(e cluster.Event) bool {
	return e.Old == nil || e.Type == cluster.Deleted || e.Old.GetGeneration() != e.Object.GetGeneration() ||
		(e.Old.GetDeletionTimestamp() == nil) != (e.Object.GetDeletionTimestamp() == nil)
}

// countAll counts the budgets of a namespace or, if it is empty, all of them.
func (b *Budgets) countAll(ctx context.Context, namespace string) {
	for _, one := range b.all(ctx, namespace) {
		b.count(ctx, one)
	}
}

func (b *Budgets) all(ctx context.Context, namespace string) []*v1beta1.PodUnavailableBudget {
	all, err := fastclient.All[v1beta1.PodUnavailableBudget](ctx, b.cover.Cache, namespace)
	if err != nil {
		b.world.Violate("budgets cannot be listed: %v", err)
	}
	return all
}

// count computes the status of a budget as a pass of the controller does, and returns the budget with it.
func (b *Budgets) count(ctx context.Context, of *v1beta1.PodUnavailableBudget) *v1beta1.PodUnavailableBudget {
	now := *of
	if s := b.known[of.UID]; s != nil {
		now.Status = s.Status
	}
	snapshot, err := b.snapshots.Read(ctx, &now)
	if err != nil {
		return b.keep(&now, now.Status, err)
	}
	snapshot.SharedUnknown = true
	return b.keep(&now, plan.Compute(snapshot).Status, nil)
}

// keep remembers a status, and returns the budget with it.
func (b *Budgets) keep(of *v1beta1.PodUnavailableBudget, status v1beta1.PodUnavailableBudgetStatus, err error) *v1beta1.PodUnavailableBudget {
	level := Level{
		Available: status.CurrentAvailable,
		Desired:   status.DesiredAvailable,
		Total:     status.TotalReplicas,
	}
	s := b.known[of.UID]
	if s == nil {
		s = &State{Budget: client.ObjectKeyFromObject(of), Lowest: level}
		b.known[of.UID] = s
	}
	if level.left() < s.Lowest.left() || level.left() == s.Lowest.left() && level.Available < s.Lowest.Available {
		s.Lowest = level
	}
	s.Status, s.Err = status, err
	after := *of
	after.Status = status
	return &after
}
