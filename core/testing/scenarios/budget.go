package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/retries"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
)

// budget is a disruption budget of all pods of a world, as module budget has them on a server: it grants or refuses the
// writes that take a pod out of service.
type budget struct {
	opens        time.Duration // since the beginning of the world; nothing is granted before
	least        int           // pods that stay
	grantLasts   time.Duration // at least, after it was given
	grants       map[types.UID]time.Time
	served       map[types.UID]bool // pods that ever had a grant
	refused      []time.Time
	roomSince    time.Time // since when one more could go, zero while none can
	longestDelay time.Duration
}

// admit is the budget's Options.Admission.
func (b *budget) admit(w *cluster.World, e cluster.Event) error {
	old, _ := e.Old.(*corev1.Pod)
	if old == nil || !cluster.IsTrue(old, corev1.PodReady) || old.DeletionTimestamp != nil || !disrupts(e, old) {
		return nil
	}
	if _, granted := b.grants[old.UID]; granted {
		return nil
	}
	if b.room(w) <= 0 {
		b.refused = append(b.refused, w.Now())
		if e.DryRun {
			w.Violate("a budget's refusal was asked for as a dry run")
		}
		return retries.RefusedByBudget(old, fmt.Errorf("PodUnavailableBudget default/web refuses UPDATE of pod %s", old.Name))
	}
	if !e.DryRun {
		b.grants[old.UID] = w.Now()
		b.served[old.UID] = true
	}
	return nil
}

// disrupts reports whether the write takes the pod out of service.
func disrupts(e cluster.Event, old *corev1.Pod) bool {
	pod := e.Object.(*corev1.Pod)
	leaves := func(t corev1.PodConditionType) bool { return cluster.IsTrue(old, t) && !cluster.IsTrue(pod, t) }
	return e.Type == cluster.Deleted || leaves(contract.InPlaceUpdateReady) || leaves(contract.KruisePodReady) || !cluster.Same(old.Spec, pod.Spec)
}

// room is how many more pods may leave service now.
func (b *budget) room(w *cluster.World) int {
	if w.Now().Before(w.Begin().Add(b.opens)) {
		return 0
	}
	n := -b.least
	for _, pod := range w.Pods() {
		at, granted := b.grants[pod.UID]
		serves := cluster.IsTrue(pod, corev1.PodReady) && !podstate.HeldByUpdate(pod) // who is about to leave does not
		if granted && !w.Now().Before(at.Add(b.grantLasts)) && serves {
			delete(b.grants, pod.UID)
			granted = false
		}
		if !granted && serves && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// watch measures how long there is room that nobody uses while pods wait for it.
func (b *budget) watch(w *simulate.World) {
	waiting := len(b.refused) > 0 && slices.ContainsFunc(w.Pods(), func(pod *corev1.Pod) bool { return !b.served[pod.UID] })
	switch room := b.room(w.Cluster()) > 0; {
	case !room || !waiting:
		b.roomSince = time.Time{}
	case b.roomSince.IsZero():
		b.roomSince = w.Now()
	default:
		b.longestDelay = max(b.longestDelay, w.Now().Sub(b.roomSince))
	}
	w.After(time.Second, func() { b.watch(w) })
}

// CheckBudget plays updates in place of four pods, all of which may leave service at once but for a disruption budget
// that lets one go at a time. start makes the workload, of which n pods may be out of service, and whose user wants the
// image, or something else that changes all pods in place, after a minute. conditionsOf returns the conditions of its status. arrived demands that it has what it wants.
//
// A pod that is refused stays in service, conditions tell of the budget and not of a failure, the write is repeated as it
// is after growing pauses, and what the budget frees is used soon.
func CheckBudget(
	t *testing.T, start func(t testing.TB, o cluster.Options, n string, images ...string) (*simulate.World, operator.Planner),
	conditionsOf func(*simulate.World) []workload.Condition, arrived func(testing.TB, *simulate.World),
) {
	t.Helper()
	const opens = 20 * time.Minute
	for name, c := range map[string]struct {
		budget
		mostDelay   time.Duration
		mostRefused int
	}{
		"free when the pod is back": {budget{least: 3}, 2 * time.Second, 20},
		"free some time after":      {budget{least: 3, grantLasts: 10 * time.Second}, 10 * time.Second, 40},
		"closed for long":           {budget{least: 3, opens: opens, grantLasts: 10 * time.Second}, 31 * time.Second, 90},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.budget
			b.grants, b.served = map[types.UID]time.Time{}, map[types.UID]bool{}
			w, p := start(t, cluster.Options{Seed: 1, Calm: true, Admission: b.admit}, "4", "app:2")
			b.watch(w)
			w.OnEvent(func(w *simulate.World, _ cluster.Event) { b.judge(w, conditionsOf(w)) })
			operator := simulate.NewOperator(w, p, simulate.Faults{})
			for w.Now().Before(w.Begin().Add(b.opens + 5*time.Minute)) {
				operator.Pass()
				w.Advance(time.Second)
			}
			require.Empty(t, w.Violations(), "the story:\n%s", w.Story())
			arrived(t, w)
			require.NotEmpty(t, b.refused)
			require.LessOrEqual(t, b.longestDelay, c.mostDelay, "the story:\n%s", w.Story())
			require.LessOrEqual(t, len(b.refused), c.mostRefused)
			require.Len(t, b.served, 4)
		})
	}
}

// CheckBudgetSurge plays a workload of n pods in the world of the options. A disruption budget wants all n in service, and a
// user wants something that takes pods out of service. The workload gets that by surge pods, and once it has n pods in
// service it never has fewer.
func CheckBudgetSurge(t *testing.T, n int, o cluster.Options, start func(testing.TB, cluster.Options) (*simulate.World, operator.Planner), arrived func(testing.TB, *simulate.World)) {
	t.Helper()
	b := budget{
		least:  n,
		grants: map[types.UID]time.Time{},
		served: map[types.UID]bool{},
	}
	o.Admission = b.admit
	w, p := start(t, o)
	operator := simulate.NewOperator(w, p, simulate.Faults{})
	complete := false
	for range 30 * 60 {
		operator.Pass()
		w.Advance(time.Second)
		ready := 0
		for _, pod := range w.Pods() {
			if cluster.IsTrue(pod, corev1.PodReady) && pod.DeletionTimestamp == nil {
				ready++
			}
		}
		if complete = complete || ready >= n; complete && ready < n {
			w.Violate("%d of %d pods are in service", ready, n)
		}
	}
	require.Empty(t, w.Violations(), "the story:\n%s", w.Story())
	arrived(t, w)
}

// judge requires that once there was a refusal no condition tells of a failure and, while nothing is granted at all, that
// one tells of the budget.
func (b *budget) judge(w *simulate.World, list []workload.Condition) {
	for _, c := range list {
		if strings.HasPrefix(c.Type, "Failed") && c.Status == corev1.ConditionTrue {
			w.Violate("condition %s is True: %s", c.Type, c.Message)
		}
	}
	if len(b.refused) == 0 || w.Now().Sub(b.refused[0]) < 10*time.Second || !w.Now().Before(w.Begin().Add(b.opens)) {
		return
	}
	for _, pod := range w.Pods() {
		if !cluster.IsTrue(pod, contract.InPlaceUpdateReady) {
			w.Violate("pod %s is out of service though the budget grants nothing", pod.Name)
		}
	}
	if c := conditions.Get(list, conditions.Ready); c == nil || c.Reason != action.WaitBudget || !strings.Contains(c.Message, "PodUnavailableBudget default/web refuses") {
		w.Violate("condition Ready does not tell of the budget: %+v", c)
	}
}
