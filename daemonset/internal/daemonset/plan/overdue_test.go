package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// asks lets the template ask for so much cpu.
func asks(cpu string) setOption {
	return func(s *v1beta1.DaemonSet) {
		s.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
}

// resizeDeadline has pods recreated that have waited so long for their resources.
func resizeDeadline(seconds int32) setOption {
	return rolling(func(r *v1beta1.RollingUpdateDaemonSet) {
		r.InPlaceUpdateStrategy = &v1beta1.InPlaceUpdateStrategy{ResizeDeadlineSeconds: &seconds}
	})
}

// awaiting is a pod whose node has put its resize off for so long: it asks for 2 cpu and has 1.
func awaiting(since time.Duration) gen.PodOption { return gen.AwaitsResize(now.Add(-since), "1") }

// begun is a pod that serves while it awaits resources, and leaves service for its new image once it has them.
func begun(pod *corev1.Pod) {
	awaiting(time.Second)(pod)
	gen.Lifecycle(contract.LifecycleUpdating)(pod)
	planned := `{"nextContainerImages":{"` + pod.Spec.Containers[0].Name + `":"app:3"},`
	state := pod.Annotations[contract.InPlaceUpdateStateAnnotation]
	pod.Annotations[contract.InPlaceUpdateStateAnnotation] = strings.Replace(state, "{", planned, 1)
}

func TestPodsThatWaitedForResourcesToTheDeadlineAreRecreated(t *testing.T) {
	deadline, late := resizeDeadline(60), awaiting(time.Minute)
	for name, tt := range map[string]struct {
		give *world
		want []string
	}{
		"at the deadline":                  {given(t, 2, asks("2"), inPlace, deadline).updated("n1").updated("n2", late), []string{"delete n2"}},
		"not before":                       {given(t, 2, asks("2"), inPlace, deadline).updated("n1").updated("n2", awaiting(59*time.Second)), []string{}},
		"never without a deadline":         {given(t, 2, asks("2"), inPlace).updated("n1").updated("n2", late), []string{}},
		"never with type Standard":         {given(t, 2, asks("2"), deadline).updated("n1").updated("n2", late), []string{}},
		"not while paused":                 {given(t, 2, asks("2"), inPlace, deadline, pausing(true)).updated("n1").updated("n2", late), []string{}},
		"one at a time":                    {given(t, 3, asks("2"), inPlace, deadline).updated("n1 n2 n3", late), []string{"delete n3"}},
		"as many as may":                   {given(t, 3, asks("2"), inPlace, deadline, maxUnavailable("2")).updated("n1 n2 n3", late), []string{"delete n3", "delete n2"}},
		"not beside one out of service":    {given(t, 2, asks("2"), inPlace, deadline).updated("n1", down).updated("n2", late), []string{}},
		"one that is out of service":       {given(t, 2, asks("2"), inPlace, deadline).updated("n1").updated("n2", late, down), []string{"delete n2"}},
		"before others are updated":        {given(t, 3, asks("2"), inPlace, deadline).old("n1 n2").updated("n3", late), []string{"delete n3"}},
		"an old one is updated in place":   {given(t, 2, asks("2"), inPlace, deadline).updated("n1").old("n2", late), []string{"update n2"}},
		"not beside one that is too young": {given(t, 2, asks("2"), inPlace, deadline, minReady(10)).updated("n1", young).updated("n2", late), []string{}},
		"an old one neither":               {given(t, 2, asks("2"), inPlace, deadline, minReady(10)).updated("n1", young).old("n2", late), []string{}},
		"a young one not beside those that are about to leave": {
			given(t, 5, asks("2"), inPlace, maxUnavailable("3"), minReady(10)).old("n1", young).old("n4").updated("n2 n3", begun).updated("n5", down), []string{},
		},
		"nor in their place": {
			given(t, 5, asks("2"), inPlace, maxUnavailable("2"), minReady(10)).old("n1", young).old("n2 n3", begun).updated("n4", down).updated("n5"), []string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.give.t, tt.give.featureGates.Resize = t, true
			require.Equal(t, tt.want, tt.give.did())
		})
	}
	early := given(t, 1, asks("2"), inPlace, deadline).updated("n1", awaiting(45*time.Second))
	early.featureGates.Resize = true
	assert.Equal(t, 15*time.Second, early.plan().RequeueAfter)
}

// From Kubernetes 1.36 on the server refuses resizes to more than the node has. Its next pod would wait as well.
func TestPodsOfNodesThatAreTooSmallStay(t *testing.T) {
	w := given(t, 1, asks("2"), inPlace, resizeDeadline(60)).old("n1")
	s := w.snapshot()
	s.Refusals = action.Refusals{{Verb: action.UpdateInPlace, Kind: "pod", Reason: "Update"}: {Targets: map[string]action.Refusal{
		string(w.pods[0].UID): {NodeTooSmall: action.NodeTooSmall{Since: now.Add(-time.Hour), Revision: revision.Hash(w.revisions[1])}},
	}}}
	todo := Compute(s)
	require.Equal(t, 1, todo.Count(action.UpdateInPlace), todo.String())
}

// Nodes put resizes off for ever, can never give them, or the server refuses them, in the midst of everything else: the
// set arrives once it may recreate pods.
func TestResizesThatNodesPutOffKeepTheInvariants(t *testing.T) {
	t.Parallel()
	scenarios.Resizes{
		Edit: func(w *simulate.World, change func(*corev1.PodSpec)) { edit(w, containers(change)) },
		Last: func(w *simulate.World, deadline int32, change func(*corev1.PodSpec)) {
			edit(w, containers(change), inRolling, inPlaceUnlessSurging, resizeDeadline(deadline))
		},
		Given: []string{"2", "40"},
	}.Check(t, worlds(asks("1"), inPlaceUnlessSurging))
}

// Containers are killed for their memory until the template gives them enough: a kubelet that starts one that is down leaves
// the limit of its pod as it was, so that only a new pod heals it.
func TestStarvedContainersGetTheirMemory(t *testing.T) {
	t.Parallel()
	scenarios.Starved{
		Limit: func(w *simulate.World, memory string) { edit(w, limited(memory)) },
		Last: func(w *simulate.World, memory string) {
			edit(w, limited(memory), inRolling, inPlaceUnlessSurging)
		},
	}.Check(t, worlds(limited("256Mi"), inPlaceUnlessSurging))
}

// containers changes those of the template.
func containers(change func(*corev1.PodSpec)) setOption {
	return func(s *v1beta1.DaemonSet) { change(&s.Spec.Template.Spec) }
}

// limited gives the container so much memory.
func limited(memory string) setOption {
	return func(s *v1beta1.DaemonSet) {
		list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
		s.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: list, Requests: list}
	}
}
