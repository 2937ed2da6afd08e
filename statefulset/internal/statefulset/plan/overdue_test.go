package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// asks lets the template ask for so much cpu.
func asks(cpu string) setOption {
	return func(s *v1beta1.StatefulSet) {
		s.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

// resizeDeadline has pods recreated that have waited so long for their resources.
func resizeDeadline(seconds int32) setOption {
	return rolling(func(r *v1beta1.RollingUpdateStatefulSetStrategy) {
		r.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{ResizeDeadlineSeconds: &seconds}
	})
}

// awaiting is a pod whose node has put its resize off for so long: it asks for 2 cpu and has 1.
func awaiting(since time.Duration) gen.PodOption { return gen.AwaitsResize(now.Add(-since), "1") }

func TestPodsThatWaitedForResourcesToTheDeadlineAreRecreated(t *testing.T) {
	inPlace, deadline, late := policy(v1beta1.InPlaceIfPossible), resizeDeadline(60), awaiting(time.Minute)
	for name, tt := range map[string]struct {
		give *world
		want []string
	}{
		"at the deadline":                 {given(t, 2, asks("2"), inPlace, deadline).updated(at(0)).updated(at(1), late), []string{"delete 1"}},
		"in order":                        {given(t, 2, asks("2"), inPlace, deadline, inOrder()).updated(at(0)).updated(at(1), late), []string{"delete 1"}},
		"not before":                      {given(t, 2, asks("2"), inPlace, deadline).updated(at(0)).updated(at(1), awaiting(59*time.Second)), []string{}},
		"never without a deadline":        {given(t, 2, asks("2"), inPlace).updated(at(0)).updated(at(1), late), []string{}},
		"never by InPlaceOnly":            {given(t, 2, asks("2"), policy(v1beta1.InPlaceOnly), deadline).updated(at(0)).updated(at(1), late), []string{}},
		"not while paused":                {given(t, 2, asks("2"), inPlace, deadline, paused(true)).updated(at(0)).updated(at(1), late), []string{}},
		"not below the partition":         {given(t, 2, asks("2"), inPlace, deadline, partition(2)).updated(at(0)).updated(at(1), late), []string{}},
		"one at a time":                   {given(t, 3, asks("2"), inPlace, deadline).updated(at(0, 1, 2), late), []string{"delete 2"}},
		"as many as may":                  {given(t, 3, asks("2"), inPlace, deadline, maxUnavailable("2")).updated(at(0, 1, 2), late), []string{"delete 2", "delete 1"}},
		"not beside one out of service":   {given(t, 2, asks("2"), inPlace, deadline).updated(at(0), unready).updated(at(1), late), []string{}},
		"one that is out of service":      {given(t, 2, asks("2"), inPlace, deadline).updated(at(0)).updated(at(1), late, unready), []string{"delete 1"}},
		"before lower ones are updated":   {given(t, 3, asks("2"), inPlace, deadline).old(at(0, 1)).updated(at(2), late), []string{"delete 2"}},
		"an old one is updated in place":  {given(t, 2, asks("2"), inPlace, deadline).updated(at(1)).old(at(0), late), []string{"update 0"}},
		"one that its hook holds goes on": {given(t, 1, asks("2"), inPlace, deadline, hooked()).updated(at(0), late, gen.Lifecycle("PreparingDelete")), []string{"delete 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.give.t = t
			require.Equal(t, tt.want, tt.give.did())
		})
	}
	early := given(t, 1, asks("2"), inPlace, deadline).updated(at(0), awaiting(45*time.Second))
	assert.Equal(t, 15*time.Second, early.plan().RequeueAfter)
}

// What a pod waits for at its present revision holds up no update: it counts against maxUnavailable already, and may be
// what the others wait for.
func TestPodsThatWaitForResourcesGoBeforeTheirTurn(t *testing.T) {
	for _, order := range []setOption{inOrder(), unorderedBy(nil)} {
		w := given(t, 3, asks("2"), policy(v1beta1.InPlaceIfPossible), order).old(at(0, 2)).old(at(1), awaiting(time.Second))
		require.Equal(t, []string{"update 1"}, w.did())
		w = given(t, 3, asks("2"), policy(v1beta1.InPlaceIfPossible), order).old(at(2)).old(at(1), awaiting(time.Second)).old(at(0), terminating)
		require.Empty(t, w.did(), "none beside one that is out of service")
	}
}

// From Kubernetes 1.36 on the server refuses resizes to more than the node has.
func TestPodsOfNodesThatAreTooSmallAreRecreatedAtTheDeadline(t *testing.T) {
	for since, want := range map[time.Duration]action.Verb{time.Minute: action.Delete, 59 * time.Second: action.UpdateInPlace} {
		w := given(t, 1, asks("2"), policy(v1beta1.InPlaceIfPossible), resizeDeadline(60)).old(at(0))
		s := w.snapshot()
		s.Refusals = action.Refusals{{Verb: action.UpdateInPlace, Kind: "pod", Reason: "Update"}: {Targets: map[string]action.Refusal{
			string(w.pods[0].UID): {NodeTooSmall: action.NodeTooSmall{Since: now.Add(-since), Revision: revision.Hash(w.revisions[1])}},
		}}}
		todo := Compute(s)
		require.Equal(t, 1, todo.Count(want), todo.String())
	}
}

// Nodes put resizes off for ever, can never give them, or the server refuses them, in the midst of everything else: the
// set arrives once it may recreate pods.
func TestResizesThatNodesPutOffKeepTheInvariants(t *testing.T) {
	t.Parallel()
	scenarios.Resizes{
		Edit: func(w *simulate.World, change func(*corev1.PodSpec)) { edit(w, containers(change), valid) },
		Last: func(w *simulate.World, deadline int32, change func(*corev1.PodSpec)) {
			edit(w, containers(change), partition(0), policy(v1beta1.InPlaceIfPossible), resizeDeadline(deadline), valid)
		},
		Given: []string{"2", "40", "100"},
	}.Check(t, worlds(asks("1"), policy(v1beta1.InPlaceIfPossible)))
}

// Containers are killed for their memory until the template gives them enough: a kubelet that starts one that is down leaves
// the limit of its pod as it was, so that only a new pod heals it.
func TestStarvedContainersGetTheirMemory(t *testing.T) {
	t.Parallel()
	scenarios.Starved{
		Limit: func(w *simulate.World, memory string) { edit(w, limited(memory), valid) },
		Last: func(w *simulate.World, memory string) {
			edit(w, limited(memory), partition(0), policy(v1beta1.InPlaceIfPossible), valid)
		},
	}.Check(t, worlds(limited("256Mi"), policy(v1beta1.InPlaceIfPossible)))
}

// containers changes those of the template.
func containers(change func(*corev1.PodSpec)) setOption {
	return func(s *v1beta1.StatefulSet) { change(&s.Spec.Template.Spec) }
}

// limited gives the container so much memory.
func limited(memory string) setOption {
	return func(s *v1beta1.StatefulSet) {
		list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
		s.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list, Requests: list}
	}
}
