package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

func TestUpdate(t *testing.T) {
	inPlace := policy(v1beta1.InPlaceIfPossible)
	tests := []struct {
		name string
		give *world
		want outcome
	}{
		{"pods are recreated within maxUnavailable", given(t, 5).old(5), outcome{deleteOld: 1}},
		{"and in place within maxUnavailable", given(t, 8, inPlace, maxUnavailable("3"), partition("2")).old(8), outcome{updated: 3}},
		{"unavailable old pods go first and spend no healthy ones", given(t, 10, inPlace, maxUnavailable("2")).old(3, unready).old(7), outcome{updated: 2}},
		{"unavailable pods are limited too", given(t, 5, inPlace, maxUnavailable("2")).old(5, unready), outcome{updated: 2}},
		{"all of them once the revision has proven good", given(t, 6, inPlace, maxUnavailable("2")).old(5, unready).updated(1), outcome{updated: 5}},
		{"also where they are recreated", given(t, 6, maxUnavailable("2")).old(5, unready).updated(1), outcome{deleteOld: 5}},
		{"and where some are under way", given(t, 6, inPlace, maxUnavailable("2")).old(3, unready).updated(2, unready).updated(1), outcome{updated: 3}},
		{"but none of those that serve", given(t, 8, inPlace, maxUnavailable("2")).old(5, unready).old(2).updated(1), outcome{updated: 5}},
		{"and none that the partition keeps", given(t, 6, inPlace, maxUnavailable("2"), partition("3")).old(5, unready).updated(1), outcome{updated: 2}},
		{"an updated pod that is too young proves nothing", given(t, 6, inPlace, maxUnavailable("2"), minReady(10)).old(5, unready).updated(1, gen.Ready(now.Add(-2*time.Second))), outcome{updated: 1}},
		{"an unavailable updated pod spends the budget", given(t, 5, inPlace).old(4).updated(1, unready), outcome{}},
		{"a broken old pod is updated though pods are missing that scaling may not add", given(t, 6, inPlace, scaleUnavailable("2")).old(3).old(2, unready), outcome{updated: 1}},
		{"a specified pod does not stand for an updated one", given(t, 1, inPlace, maxUnavailable("0"), maxSurge("1")).old(1, unready).updated(1, gen.SpecifiedDelete()), outcome{updated: 1}},
		{"the partition keeps old pods", given(t, 5, inPlace, maxUnavailable("5"), partition("3")).old(5), outcome{updated: 2}},
		{"99% of 4 updates one pod", given(t, 4, inPlace, maxUnavailable("4"), partition("99%")).old(4), outcome{updated: 1}},
		{"paused updates nothing", given(t, 5, inPlace, paused()).old(5), outcome{}},
		{"a raised partition takes nothing back", given(t, 5, inPlace, partition("5")).old(2).updated(3), outcome{}},

		{"surge creates an updated pod first", given(t, 5, partition("3"), maxSurge("1")).old(5), outcome{createNew: 1}},
		{"then an old one goes", given(t, 5, partition("3"), maxSurge("1")).old(5).updated(1, unready), outcome{deleteOld: 1}},
		{"then the next surge pod", given(t, 5, partition("3"), maxSurge("1")).old(4).updated(1), outcome{createNew: 1}},
		{"at last a surplus old pod", given(t, 5, partition("3"), maxSurge("1")).old(4).updated(2), outcome{deleteOld: 1}},
		{"and it is done", given(t, 5, partition("3"), maxSurge("1")).old(3).updated(2), outcome{}},
		{"paused makes no surge", given(t, 5, maxSurge("1"), paused()).old(5), outcome{}},
		{"in place needs no surge", given(t, 5, inPlace, maxUnavailable("1"), maxSurge("2")).old(5), outcome{updated: 1}},
		{"unless nothing may be unavailable", given(t, 5, inPlace, maxUnavailable("0"), maxSurge("1")).old(5), outcome{createNew: 1}},
		{"then one is updated beside the surge pod", given(t, 5, inPlace, maxUnavailable("0"), maxSurge("1")).old(5).updated(1), outcome{updated: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.give.t = t
			require.Equal(t, tt.want, tt.give.outcome())
		})
	}
}

// failing says that the last attempt to create pods has failed.
func failing(s *v1beta1.CloneSet) {
	s.Status.Conditions = []workload.Condition{{Type: v1beta1.CloneSetFailedScale, Status: corev1.ConditionTrue, Reason: "Error", Message: "quota"}}
}

// Pods that cannot be created hold up no update, and cost no pod that serves.
func TestUpdatesGoOnWhilePodsCannotBeCreated(t *testing.T) {
	inPlace := policy(v1beta1.InPlaceIfPossible)
	for name, tt := range map[string]struct {
		give *world
		want outcome
	}{
		"creation comes first":                       {given(t, 5, inPlace, maxUnavailable("2")).old(4), outcome{createNew: 1}},
		"but not after it has failed":                {given(t, 5, inPlace, maxUnavailable("2"), failing).old(4), outcome{updated: 1}},
		"it is tried again when the update waits":    {given(t, 5, inPlace, maxUnavailable("1"), failing).old(4), outcome{createNew: 1}},
		"and when nothing is to be updated":          {given(t, 5, inPlace, failing).updated(4), outcome{createNew: 1}},
		"the missing pods are part of the budget":    {given(t, 5, inPlace, maxUnavailable("2"), failing).old(3), outcome{createNew: 2}},
		"a broken pod is updated in place":           {given(t, 5, inPlace, failing).old(2, unready), outcome{updated: 1}},
		"or leaves to make room":                     {given(t, 5, maxUnavailable("2"), failing).old(2).old(1, unready), outcome{deleteOld: 1}},
		"unless more are missing than may":           {given(t, 5, maxUnavailable("2"), failing).old(1).old(1, unready), outcome{createNew: 3}},
		"a set that has all its pods does as always": {given(t, 5, inPlace, maxUnavailable("2"), failing).old(5), outcome{updated: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.give.t = t
			require.Equal(t, tt.want, tt.give.outcome())
		})
	}
	short := given(t, 5, maxUnavailable("2"), failing).old(1).old(1, unready)
	require.Contains(t, short.waits(), "FailedScale")
}

func TestPartitionRollback(t *testing.T) {
	w := given(t, 5, policy(v1beta1.InPlaceIfPossible), partition("5")).old(2).updated(3)
	w.featureGates.PartitionRollback = true
	require.Equal(t, outcome{updated: 1}, w.outcome(), "one at a time goes back")
	w = given(t, 5, partition("4"), maxSurge("1")).old(2).updated(3)
	w.featureGates.PartitionRollback = true
	require.Equal(t, outcome{createOld: 1}, w.outcome(), "the surge pod has the current revision")
}

func TestPreparingUpdateAsUpdate(t *testing.T) {
	preparing := []gen.PodOption{gen.Lifecycle(contract.LifecyclePreparingUpdate), gen.Label("hook", "on")}
	w := given(t, 2, hooked(), policy(v1beta1.InPlaceIfPossible), partition("50%")).old(1, preparing...)
	require.Equal(t, outcome{createNew: 1}, w.outcome(), "the feature gate is off")
	w.featureGates.PreparingUpdateAsUpdate = true
	require.Equal(t, outcome{createOld: 1}, w.outcome(), "the feature gate is on")
}

// The first write takes the pod out of service, the second, once the kubelet has answered, changes it; nothing else is
// written.
func TestInPlaceUpdateWrites(t *testing.T) {
	todo := given(t, 1, policy(v1beta1.InPlaceIfPossible)).old(1).plan()
	require.Equal(t, 1, todo.Count(action.UpdateInPlace), todo.String())
	a := todo.Steps[0].Actions[0]
	require.Len(t, a.Patches, 1)
	require.Len(t, a.LaterPatches, 1)
	require.Equal(t, "status", a.Patches[0].Subresource)
	require.Empty(t, a.LaterPatches[0].Subresource)
	labels := a.Patches[0].Body["metadata"].(map[string]any)["labels"].(map[string]any)
	require.Equal(t, contract.LifecycleUpdating, labels[contract.LifecycleStateLabel])
	require.Contains(t, a.LaterPatches[0].Body["spec"].(map[string]any)["containers"], map[string]any{"name": "main", "image": "app:2"})
}

func TestInPlaceOnlyWaitsForWhatCannotBeDone(t *testing.T) {
	w := given(t, 2, policy(v1beta1.InPlaceOnly)).old(2)
	template := gen.Template(gen.Label("app", "web"), gen.Image("main", "app:2"), gen.Image("second", "app:2"))
	w.set.Spec.Template = template
	w.revisions[1] = revisionOf(t, w, template)
	require.Equal(t, outcome{}, w.outcome())
	require.Contains(t, w.waits(), "NotInPlace")
}

func TestInPlaceIfPossibleRecreatesWhatCannotBeDone(t *testing.T) {
	w := given(t, 2, policy(v1beta1.InPlaceIfPossible)).old(2)
	template := gen.Template(gen.Label("app", "web"), gen.Image("main", "app:2"), gen.Image("second", "app:2"))
	w.set.Spec.Template = template
	w.revisions[1] = revisionOf(t, w, template)
	require.Equal(t, outcome{deleteOld: 1}, w.outcome())
}

// A node agent tells about a container within seconds of its start, and not at once. An update that comes in between does
// not cost the pod; without an agent it does, once that time is over.
func TestInPlaceIfPossibleWaitsForTheNodeAgentOfNewContainers(t *testing.T) {
	started := func(ago time.Duration) gen.PodOption {
		return gen.Change(func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-ago))}
		})
	}
	for ago, want := range map[time.Duration]outcome{2 * time.Second: {}, time.Minute: {createNew: 1}} { // the surge
		w := given(t, 2, policy(v1beta1.InPlaceIfPossible), maxSurge("1"), readsConfig).old(2, started(ago))
		template := *w.set.Spec.Template.DeepCopy()
		template.Annotations[scenarios.ConfigAnnotation] = "2"
		template.Spec.Containers[0].Image = "app:1"
		w.set.Spec.Template = template
		w.revisions[1] = revisionOf(t, w, template)
		require.Equal(t, want, w.outcome(), ago)
		require.Equal(t, ago < time.Minute, slices.Contains(w.waits(), "NodeAgentMissing"), ago)
	}
}

func TestHookHoldsTheUpdate(t *testing.T) {
	w := given(t, 1, hooked(), policy(v1beta1.InPlaceIfPossible)).old(1, gen.Label("hook", "on"))
	todo := w.plan()
	require.Equal(t, "update:\n  PatchMetadata pod web-old0 (InPlaceUpdateHook): revision "+
		short(w.revisions[1])+"; the inPlaceUpdate hook holds it\n", todo.String())
}

func TestHeldPodIsWrittenOnce(t *testing.T) {
	w := given(t, 1, hooked(), policy(v1beta1.InPlaceIfPossible)).old(1, gen.Label("hook", "on"), gen.Lifecycle(contract.LifecyclePreparingUpdate))
	todo := w.plan()
	require.True(t, todo.Empty(), todo.String())
	require.Contains(t, w.waits(), "InPlaceUpdateHook")
}

func TestOnDeleteTakesPodsBackThatWereToBeUpdated(t *testing.T) {
	w := given(t, 1, hooked(), onDeleteOnly()).old(1, gen.Label("hook", "on"), gen.Lifecycle(contract.LifecyclePreparingUpdate))
	require.Contains(t, text(w.plan()), "PatchMetadata pod web-old0 (NoLongerWanted)")
}

func TestHeldRecreationIsMarked(t *testing.T) {
	w := given(t, 1, hooked()).old(1, gen.Label("hook", "on"))
	todo := w.plan()
	require.Len(t, todo.Steps, 1, todo.String())
	labels := todo.Steps[0].Actions[0].Patches[0].Body["metadata"].(map[string]any)["labels"].(map[string]any)
	require.Equal(t, contract.LifecyclePreparingDelete, labels[contract.LifecycleStateLabel])
	require.Equal(t, contract.SpecifiedDeleteForUpdate, labels[contract.SpecifiedDeleteLabel], "without the mark the pod would be taken back")
}

// A change of labels alone restarts nothing and is written at once; a resize takes two writes.
func TestUpdatesThatInterruptNothing(t *testing.T) {
	w := given(t, 1, policy(v1beta1.InPlaceIfPossible)).old(1)
	template := gen.Template(gen.Label("app", "web"), gen.Label("version", "2"), gen.Image("main", "app:1"))
	w.set.Spec.Template = template
	w.revisions[1] = revisionOf(t, w, template)
	patches := w.plan().Steps[0].Actions[0].Patches
	require.Len(t, patches, 1)
	labels := patches[0].Body["metadata"].(map[string]any)["labels"].(map[string]any)
	require.Equal(t, "2", labels["version"])
	require.NotContains(t, labels, contract.LifecycleStateLabel, "the pod stays Normal")
}

func TestAnUnreadableRecordBeginsTheUpdateAgain(t *testing.T) {
	w := given(t, 1, policy(v1beta1.InPlaceIfPossible)).updated(1, unready,
		gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionFalse, now), gen.Lifecycle(contract.LifecycleUpdating), gen.Annotation(contract.InPlaceUpdateStateAnnotation, "{"))
	todo := w.plan()
	require.Len(t, todo.Steps, 1, todo.String())
	meta := todo.Steps[0].Actions[0].Patches[0].Body["metadata"].(map[string]any)
	require.Contains(t, meta["annotations"], contract.InPlaceUpdateStateAnnotation)
}

// A pause keeps what users have specified, and what hooks hold.
func TestAPauseLeavesOtherPodsAlone(t *testing.T) {
	going := gen.Lifecycle(contract.LifecyclePreparingDelete)
	for name, tt := range map[string]struct {
		options []gen.PodOption
		want    string
	}{
		"let go for an update in place":  {[]gen.PodOption{gen.Lifecycle(contract.LifecyclePreparingUpdate)}, "(Paused)"},
		"let go for a new pod":           {[]gen.PodOption{going, gen.Label(contract.SpecifiedDeleteLabel, contract.SpecifiedDeleteForUpdate)}, "(Paused)"},
		"let go as a user has specified": {[]gen.PodOption{going, gen.SpecifiedDelete()}, "(HookReleased)"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, text(given(t, 1, hooked(), paused()).old(1, tt.options...).plan()), tt.want)
			hold := append(tt.options, gen.Label("hook", "on"))
			require.Empty(t, given(t, 1, hooked(), paused()).old(1, hold...).plan().Steps)
		})
	}

	forUpdate := []gen.PodOption{going, gen.Label(contract.SpecifiedDeleteLabel, contract.SpecifiedDeleteForUpdate)}
	replaced := given(t, 1, hooked(), paused(), excluding()).old(1, forUpdate...).updated(1)
	require.Contains(t, text(replaced.plan()), "(HookReleased)", "another pod has its place")
	require.NotContains(t, text(replaced.plan()), "(Paused)")
}
