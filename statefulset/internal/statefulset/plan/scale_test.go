package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

var (
	failed     = gen.Phase(corev1.PodFailed)
	preparing  = gen.Lifecycle(contract.LifecyclePreparingNormal)
	readySince = func(ago time.Duration) gen.PodOption { return gen.Ready(now.Add(-ago)) }
)

// row is a world and what its plan does to pods.
type row struct {
	name  string
	world *world
	want  []string
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			w := r.world
			todo := w.plan()
			assert.Equal(t, r.want, w.did(), "%s", todo.String())
		})
	}
}

// The example of the founding documents: 4 replicas run as 0 2 3 4 where 1 is reserved, and a pod is
// moved away by reserving its ordinal, with or without lowering replicas.
func TestReservedOrdinals(t *testing.T) {
	check(t, []row{
		{"four replicas without 1", given(t, 4, reserved(1)), []string{"create 0", "create 2", "create 3", "create 4"}},
		{"3 is reserved too", given(t, 4, reserved(1, 3)).updated(at(0, 2, 3, 4)), []string{"create 5", "delete 3"}},
		{"3 is reserved too and replicas lowered", given(t, 3, reserved(1, 3)).updated(at(0, 2, 3, 4)), []string{"delete 3"}},
		{"a range", given(t, 3, reserved(0, "2-5")), []string{"create 1", "create 6", "create 7"}},
		{"nothing is reserved any more", given(t, 3).updated(at(0, 2, 4)), []string{"create 1", "delete 4"}},
		{"start moves from 0 to 2", given(t, 3, startAt(2)).updated(at(0, 1)), []string{"create 2", "create 3", "create 4", "delete 1", "delete 0"}},
		{"in order, condemned pods go after the live ones are there", given(t, 3, inOrder(), startAt(2)).updated(at(0, 1)), []string{"create 2"}},
		{"start without its feature gate", given(t, 2, startAt(5)).withFeatureGates(func(g *FeatureGates) { g.StartOrdinal = false }), []string{"create 0", "create 1"}},
		{"nobody expands what is reserved", given(t, 1, reserved("0-2000000000")), []string{"create 2000000001"}},
	})
}

func TestOrderedScaling(t *testing.T) {
	check(t, []row{
		{"the first of three", given(t, 3, inOrder()), []string{"create 0"}},
		{"the second once the first is available", given(t, 3, inOrder()).updated(at(0)), []string{"create 1"}},
		{"nothing while the first is not ready", given(t, 3, inOrder()).updated(at(0), unready), []string{}},
		{"nothing while the first is not available", given(t, 3, inOrder(), minReady(10)).updated(at(0), readySince(5*time.Second)), []string{}},
		{"nothing while the first is prepared", given(t, 3, inOrder(), preNormalHook()).updated(at(0), preparing), []string{}},
		{"a gap comes first", given(t, 4, inOrder()).updated(at(0, 2)), []string{"create 1"}},
		{"a failed pod is replaced", given(t, 3, inOrder()).updated(at(0)).updated(at(1), failed), []string{"delete 1"}},
		{"not before those below are available", given(t, 3, inOrder()).updated(at(0), unready).updated(at(1), failed), []string{}},
		{"the highest goes first", given(t, 0, inOrder()).updated(span(0, 2)), []string{"delete 2"}},
		{"the next once it is gone", given(t, 0, inOrder()).updated(span(0, 1)).updated(at(2), terminating), []string{}},
		{"three unready, none wanted: nothing", given(t, 0, inOrder()).updated(span(0, 2), unready), []string{}},
		{"only the middle one unready: the last goes", given(t, 0, inOrder()).updated(at(0, 2)).updated(at(1), unready), []string{"delete 2"}},
		{"then the unready one", given(t, 0, inOrder()).updated(at(0)).updated(at(1), unready), []string{"delete 1"}},
		{"unready ones that the template has left behind hold up nobody, the highest goes first", given(t, 1, inOrder()).updated(at(0)).old(span(1, 2), unready), []string{"delete 2"}},
		{"not even where others wait for each other", given(t, 0, inOrder()).old(at(0, 1), unready).updated(span(2, 3), unready), []string{"delete 1"}},
		{"but those that serve wait for their turn", given(t, 0, inOrder()).old(at(0, 1)).updated(span(2, 3), unready), []string{}},
		{"a pod that has ended holds up nobody", given(t, 0, inOrder()).updated(at(0), failed).updated(at(1), unready), []string{"delete 1"}},
		{"a live pod holds up removal", given(t, 1, inOrder()).updated(at(0), unready).updated(span(1, 2)), []string{}},
		{"one that its hook has let go is removed first", given(t, 0, inOrder(), hooked()).updated(at(0, 2)).updated(at(1), gen.Lifecycle(contract.LifecyclePreparingDelete)), []string{"delete 1"}},
		{"one that its hook holds holds up the others", given(t, 0, inOrder(), hooked()).updated(at(0, 2)).updated(at(1), heldBefore(contract.LifecyclePreparingDelete)), []string{}},
	})
}

func TestParallelScaling(t *testing.T) {
	check(t, []row{
		{"all at once", given(t, 3), []string{"create 0", "create 1", "create 2"}},
		{"whatever the health of others", given(t, 3).updated(at(0), unready), []string{"create 1", "create 2"}},
		{"a terminating pod holds up nobody", given(t, 4).updated(at(0), terminating).updated(at(1)), []string{"create 2", "create 3"}},
		{"a failed pod is replaced", given(t, 3).updated(at(0, 2)).updated(at(1), failed), []string{"delete 1"}},
		{"all too many go, the highest first", given(t, 1).updated(span(0, 3), unready), []string{"delete 3", "delete 2", "delete 1"}},
		{"but those that go already", given(t, 1).updated(at(0, 3)).updated(span(1, 2), terminating), []string{"delete 3"}},
	})
}

// scaleStrategy.maxUnavailable, with the examples of the specification.
func TestScaleStrategy(t *testing.T) {
	check(t, []row{
		{"5 replicas, 2, fresh", given(t, 5, scaleUnavailable("2")), []string{"create 0", "create 1"}},
		{"1 is ready, 0 not", given(t, 5, scaleUnavailable("2")).updated(at(0), unready).updated(at(1)), []string{"create 2"}},
		{"both are ready", given(t, 5, scaleUnavailable("2")).updated(at(0, 1)).updated(at(2), unready), []string{"create 3"}},
		{"3 ready, scaled to 10", given(t, 10, scaleUnavailable("2")).updated(span(0, 2)), []string{"create 3", "create 4"}},
		{"20% of 10", given(t, 10, scaleUnavailable("20%")), []string{"create 0", "create 1"}},
		{"5% of 10 is 1", given(t, 10, scaleUnavailable("5%")), []string{"create 0"}},
		{"100% of 3", given(t, 3, scaleUnavailable("100%")), []string{"create 0", "create 1", "create 2"}},
		{"a terminating pod takes one", given(t, 3, scaleUnavailable("1")).updated(at(0), terminating), []string{}},
		{"a failed pod is deleted first and counted then", given(t, 3, scaleUnavailable("1")).updated(at(0), failed), []string{"delete 0"}},
		{"a failed pod is deleted however little is left", given(t, 3, scaleUnavailable("1")).updated(at(0), unready).updated(at(1), failed), []string{"delete 1"}},
		{"in order it plays no part", given(t, 3, inOrder(), scaleUnavailable("1")).updated(at(0)), []string{"create 1"}},
	})
}

func TestNewPodsAreWhatTheSpecSays(t *testing.T) {
	w := given(t, 2, claimed("data", "log")).updated(at(0))
	w.set.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data"}}
	w.revisions[1] = w.revision(w.set.Spec.Template, 2)
	var create action.Action
	for a := range judges.Actions(w.plan().Steps, stepCreate) {
		create = a
	}
	o := create.Object.(*corev1.Pod)
	assert.Equal(t, "web-1", o.Name)
	assert.Equal(t, "web-1", o.Spec.Hostname)
	assert.Equal(t, "web-service", o.Spec.Subdomain)
	assert.Equal(t, map[string]string{
		"app": "web", "statefulset.kubernetes.io/pod-name": "web-1", "apps.kubernetes.io/pod-index": "1",
		contract.RevisionLabel: w.revisions[1].Name, contract.LifecycleStateLabel: contract.LifecyclePreparingNormal,
	}, o.Labels)
	require.Len(t, o.OwnerReferences, 1)
	ref := o.OwnerReferences[0]
	assert.Equal(t, "apps.kruise.io/v1beta1 StatefulSet web", ref.APIVersion+" "+ref.Kind+" "+ref.Name)
	assert.True(t, *ref.Controller && *ref.BlockOwnerDeletion)
	assert.Equal(t, corev1.PullAlways, o.Spec.Containers[0].ImagePullPolicy)
	require.Len(t, o.Spec.Volumes, 2)
	assert.Equal(t, "data-web-1", o.Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
	assert.Equal(t, "log-web-1", o.Spec.Volumes[1].PersistentVolumeClaim.ClaimName)
	require.Len(t, create.Prerequisites, 2)
	claim := create.Prerequisites[0].(*corev1.PersistentVolumeClaim)
	assert.Equal(t, "data-web-1", claim.Name)
	assert.Equal(t, map[string]string{"app": "web"}, claim.Labels)
	assert.Empty(t, claim.OwnerReferences)
}

// An invalid entry is no reason to make or remove pods: what runs goes on running.
func TestAnInvalidReservationAddsAndRemovesNoPod(t *testing.T) {
	w := given(t, 5, reserved(1, "3-1")).updated(at(0, 1, 7)).updated(at(2), failed)
	todo := w.plan()
	assert.Equal(t, []string{}, w.did())
	require.ErrorContains(t, todo.Err, "spec.reserveOrdinals[1]")
	require.Len(t, todo.Notices, 1)
	assert.Equal(t, v1beta1.ReasonInvalidSpec, todo.Notices[0].Reason)
	assert.Contains(t, todo.Notices[0].Note, `"3-1" is not a valid range`)
	w.set.Status = w.status()
	assert.Empty(t, w.plan().Notices, "the user knows")
}

// A plan creates no more pods than a pass has time for, and says that there are more: a set of an absurd size costs what
// a large one costs.
func TestAPlanCreatesOnlySomeOfManyPods(t *testing.T) {
	for replicas, more := range map[int32]bool{action.MaxCreates + 2: false, action.MaxCreates + 3: true, 2_000_000_000: true} {
		todo := given(t, replicas).updated(at(0, 100)).plan()
		require.Equal(t, action.MaxCreates, todo.Count(action.Create))
		last := todo.Steps[len(todo.Steps)-1]
		assert.Equal(t, stepCreate, last.Name)
		assert.Equal(t, more, last.More, "%d replicas", replicas)
	}
	w := given(t, 2_000_000_000).updated(at(0, 1_000_000))
	todo := w.plan()
	assert.Equal(t, action.MaxCreates, todo.Count(action.Create))
	w = given(t, 2_000_000_000).updated(at(0, 1_500_000_000)).old(at(1_000_000))
	assert.Equal(t, "BlockedByUnavailablePods ", w.waits()[0])
}

// W7: choosing the revision of new pods took the square of their number.
func TestTheRevisionOfNewPodsIsChosenByRank(t *testing.T) {
	check(t, []row{
		{"start 0, partition 1", given(t, 3, partition(1)), []string{"create 0 old", "create 1", "create 2"}},
		{"1 reserved, partition 2", given(t, 3, reserved(1), partition(2)), []string{"create 0 old", "create 2 old", "create 3"}},
		{"start 2, partition 1", given(t, 3, startAt(2), partition(1)), []string{"create 2 old", "create 3", "create 4"}},
		{"partition 3 of 3", given(t, 3, partition(3)).old(at(0, 1)), []string{"create 2 old"}},
		{"partition lowered to 2", given(t, 3, partition(2)).old(at(1)), []string{"create 0 old", "create 2"}},
		{"paused plays no part", given(t, 3, partition(1), paused(true)).old(at(0, 1)), []string{"create 2"}},
		{"unordered, one of the others is old", given(t, 3, unorderedBy(nil), partition(1)).old(at(0)).updated(at(1)), []string{"create 2"}},
		{"unordered, none of the others is old", given(t, 3, unorderedBy(nil), partition(1)).updated(at(0, 1)), []string{"create 2 old"}},
		{"unordered, planned pods count", given(t, 4, unorderedBy(nil), partition(2)).updated(at(3)), []string{"create 0 old", "create 1 old", "create 2"}},
		{"OnDelete", given(t, 2, onDeleteOnly()).old(at(0)), []string{"create 1"}},
	})
}

// A condemned pod and one to be created are no obstacle to each other at once.
func TestStartMovesWhilePodsRun(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 1}, 2)
	simulate.Settle(t, w, p, 500)
	edit(w, startAt(2), replicas(3))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	assert.Equal(t, at(2, 3, 4), running(w))
}
