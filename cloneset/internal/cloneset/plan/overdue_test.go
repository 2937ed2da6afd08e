package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// resizeDeadline has pods recreated that have waited so long for their resources.
func resizeDeadline(seconds int32) setOption {
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) {
		r.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{ResizeDeadlineSeconds: &seconds}
	})
}

// awaiting is a pod whose node has put its resize off for so long: it asks for 2 cpu and has 1.
func awaiting(since time.Duration) gen.PodOption { return gen.AwaitsResize(now.Add(-since), "1") }

func TestPodsThatWaitedForResourcesToTheDeadlineAreRecreated(t *testing.T) {
	inPlace, deadline := policy(v1beta1.InPlaceIfPossible), resizeDeadline(60)
	late, foreign := awaiting(time.Minute), gen.Change(func(o *corev1.Pod) {
		o.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
	})
	changing := gen.Lifecycle(contract.LifecyclePreparingUpdate)                                   // the pass takes it back to Normal
	unlabelled := gen.Change(func(o *corev1.Pod) { delete(o.Labels, contract.TemplateHashLabel) }) // the pass gives it back
	for name, tt := range map[string]struct {
		give *world
		want outcome
	}{
		"at the deadline":                {given(t, 2, asks("2"), inPlace, deadline).updated(1).updated(1, late), outcome{deleteNew: 1}},
		"not before":                     {given(t, 2, asks("2"), inPlace, deadline).updated(1).updated(1, awaiting(59*time.Second)), outcome{}},
		"at once":                        {given(t, 2, asks("2"), inPlace, resizeDeadline(0)).updated(1).updated(1, awaiting(0)), outcome{deleteNew: 1}},
		"never without a deadline":       {given(t, 2, asks("2"), inPlace).updated(1).updated(1, late), outcome{}},
		"never by InPlaceOnly":           {given(t, 2, asks("2"), policy(v1beta1.InPlaceOnly), deadline).updated(1).updated(1, late), outcome{}},
		"not while paused":               {given(t, 2, asks("2"), inPlace, deadline, paused()).updated(1).updated(1, late), outcome{}},
		"what an autoscaler asks for":    {given(t, 2, asks("2"), inPlace, deadline).updated(1).updated(1, late, foreign), outcome{}},
		"one at a time":                  {given(t, 3, asks("2"), inPlace, deadline).updated(3, late), outcome{deleteNew: 1}},
		"as many as may":                 {given(t, 3, asks("2"), inPlace, deadline, maxUnavailable("2")).updated(3, late), outcome{deleteNew: 2}},
		"not beside one out of service":  {given(t, 2, asks("2"), inPlace, deadline).updated(1, unready).updated(1, late), outcome{}},
		"one that is out of service":     {given(t, 2, asks("2"), inPlace, deadline).updated(1).updated(1, late, unready), outcome{deleteNew: 1}},
		"before others are updated":      {given(t, 3, asks("2"), inPlace, deadline).old(2).updated(1, late), outcome{deleteNew: 1}},
		"with a partition":               {given(t, 3, asks("2"), inPlace, deadline, partition("2")).old(2).updated(1, late), outcome{deleteNew: 1}},
		"others go in its place":         {given(t, 2, asks("2"), inPlace, deadline).old(1, unready).updated(1, late, unready), outcome{deleteNew: 1}},
		"none while it is changed":       {given(t, 2, asks("2"), inPlace, deadline).old(1, unready).updated(1, late, unready, changing), outcome{}},
		"beside a surge pod":             {given(t, 2, asks("2"), inPlace, deadline, maxUnavailable("0"), maxSurge("1")).updated(1).updated(1, late), outcome{createNew: 1}},
		"once the surge pod is there":    {given(t, 2, asks("2"), inPlace, deadline, maxUnavailable("0"), maxSurge("1")).updated(2).updated(1, late), outcome{deleteNew: 1}},
		"the surge pod stays meanwhile":  {given(t, 2, asks("2"), inPlace, deadline, maxSurge("1")).updated(1).updated(1, late, unlabelled).updated(1, gen.DeletionCost("-1")), outcome{}},
		"an old one is updated in place": {given(t, 2, asks("2"), inPlace, deadline).updated(1).old(1, late), outcome{updated: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.give.t = t
			require.Equal(t, tt.want, tt.give.outcome())
		})
	}
	early := given(t, 1, asks("2"), inPlace, deadline).updated(1, awaiting(45*time.Second))
	assert.Equal(t, 15*time.Second, early.plan().RequeueAfter)
	assert.Contains(t, text(given(t, 1, asks("2"), inPlace, deadline).updated(1, late).plan()), "failed to allocate the resources")
}

// From Kubernetes 1.36 on the server refuses resizes to more than the node has.
func TestPodsOfNodesThatAreTooSmallAreRecreatedAtTheDeadline(t *testing.T) {
	for name, tt := range map[string]struct {
		since  time.Duration
		target int
		want   action.Verb
	}{
		"at the deadline":            {time.Minute, 1, action.Delete},
		"not before":                 {59 * time.Second, 1, action.UpdateInPlace},
		"not for another revision's": {time.Minute, 0, action.UpdateInPlace},
	} {
		t.Run(name, func(t *testing.T) {
			w := given(t, 1, asks("2"), policy(v1beta1.InPlaceIfPossible), resizeDeadline(60)).old(1)
			s := w.snapshot()
			s.Refusals = action.Refusals{{Verb: action.UpdateInPlace, Kind: "pod", Reason: "Update"}: {Targets: map[string]action.Refusal{
				string(w.pods[0].UID): {NodeTooSmall: action.NodeTooSmall{
					Since: now.Add(-tt.since), Revision: podstate.ShortHash(w.revisions[tt.target].Name),
				}},
			}}}
			todo := Compute(s)
			require.Equal(t, 1, todo.Count(tt.want), todo.String())
		})
	}
}

// Nodes put resizes off for ever, can never give them, or the server refuses them, in the midst of everything else: the
// set arrives once it may recreate pods.
func TestResizesThatNodesPutOffKeepTheInvariants(t *testing.T) {
	t.Parallel()
	scenarios.Resizes{
		Edit: func(w *simulate.World, change func(*corev1.PodSpec)) { edit(w, containers(change), valid) },
		Last: func(w *simulate.World, deadline int32, change func(*corev1.PodSpec)) {
			edit(w, containers(change), partition("0"), policy(v1beta1.InPlaceIfPossible), resizeDeadline(deadline), valid)
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
			edit(w, limited(memory), partition("0"), policy(v1beta1.InPlaceIfPossible), valid)
		},
	}.Check(t, worlds(limited("256Mi"), policy(v1beta1.InPlaceIfPossible)))
}

// containers changes those of the template.
func containers(change func(*corev1.PodSpec)) setOption {
	return func(s *v1beta1.CloneSet) { change(&s.Spec.Template.Spec) }
}

// limited gives the container so much memory.
func limited(memory string) setOption {
	return func(s *v1beta1.CloneSet) {
		list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
		s.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list, Requests: list}
	}
}
