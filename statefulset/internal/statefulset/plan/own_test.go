package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

func TestMembersAreKnownByName(t *testing.T) {
	for name, want := range map[string]bool{
		"web-0": true, "web-10": true, "web-2147483647": true,
		"web": false, "web-": false, "web-01": false, "web-00": false, "web-a": false, "web--1": false, "web-+1": false,
		"web-0-0": false, "web-x-0": false, "other-0": false, "web2-0": false, "web-2147483648": false,
	} {
		assert.Equal(t, want, IsMember(newSet(1), name), name)
	}
}

func TestOwnershipFollowsSelectorAndName(t *testing.T) {
	own := func(w *world) []string {
		did := []string{}
		for a := range judges.Actions(w.plan().Steps, stepOwn) {
			did = append(did, string(a.Verb)+" "+a.Object.GetName())
		}
		return did
	}
	w := given(t, 2).updated(at(0)).updated(at(1), gen.Label("app", "other"))
	assert.Equal(t, []string{"Release web-1"}, own(w))
	assert.Equal(t, []string{}, w.did(), "its ordinal is not empty yet")

	w = given(t, 1).updated(at(0))
	w.pods = append(w.pods, w.pod(w.revisions[1], 1))
	w.pods[1].Name = "web-01"
	assert.Equal(t, []string{"Release web-01"}, own(w))

	w = given(t, 2).updated(at(0))
	w.orphans = []*corev1.Pod{w.pod(w.revisions[0], 1, gen.Change(func(o *corev1.Pod) { o.OwnerReferences = nil }))}
	assert.Equal(t, []string{"Adopt web-1"}, own(w))
	assert.Equal(t, []string{}, w.did(), "it fills its ordinal, and is updated once it is ours")

	w = given(t, 1).updated(at(0), terminating, gen.Label("app", "other"))
	assert.Empty(t, own(w), "what goes is let go")
}

// W25: labels of the identity were not repaired.
func TestIdentityLabelsAreRepaired(t *testing.T) {
	for name, change := range map[string]gen.PodOption{
		"no index":    gen.Change(func(o *corev1.Pod) { delete(o.Labels, appsv1.PodIndexLabel) }),
		"wrong index": gen.Label(appsv1.PodIndexLabel, "7"),
		"wrong name":  gen.Label(appsv1.StatefulSetPodNameLabel, "web-7"),
	} {
		w := given(t, 1, paused(true)).updated(at(0), change)
		var repair *action.Action
		for a := range judges.Actions(w.plan().Steps, stepRefresh) {
			repair = &a
		}
		require.NotNil(t, repair, name)
		require.Len(t, repair.Patches, 1, "one write")
		assert.Equal(t, "SuccessfulUpdate", repair.Event.Succeeded)
	}
	w := given(t, 1).updated(at(0), gen.Change(func(o *corev1.Pod) { delete(o.Labels, appsv1.PodIndexLabel) }))
	w.featureGates.PodIndexLabel = false
	assert.Empty(t, w.plan().Steps, "not without the feature gate")
}

// left is what a built-in StatefulSet leaves behind that was deleted without its pods: pods and a
// revision without a controller, and neither readiness gates nor lifecycle labels on them.
func left(t *testing.T, w *simulate.World, template corev1.PodTemplateSpec, n int32) {
	t.Helper()
	native := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: gen.Namespace, UID: "native"}}
	r, err := revision.New(native, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), &template, 1, 7)
	require.NoError(t, err)
	r.OwnerReferences = nil
	w.Add(r)
	for ordinal := range n {
		o := gen.Pod(podName("web", ordinal), gen.FromTemplate(template), gen.Revision(r.Name), gen.OnNode("node-1"), gen.Ready(w.Now()),
			gen.Label(appsv1.StatefulSetPodNameLabel, podName("web", ordinal)))
		w.Add(o)
	}
}

// Pods of a built-in StatefulSet are taken over as they run, and updated like any others afterwards.
func TestPodsOfABuiltInSetAreTakenOverWithoutARestart(t *testing.T) {
	for _, way := range []v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible} {
		for _, order := range []setOption{inOrder(), maxUnavailable("2")} {
			w, p := play(t, cluster.Options{Seed: 3}, 3, policy(way), order)
			left(t, w, *present(w).Spec.Template.DeepCopy(), 3)
			before := identities(w)
			require.Len(t, w.Pods(), 3)
			simulate.Settle(t, w, p, 500)
			arrived(t, w)
			require.Equal(t, before, identities(w), "the story:\n%s", w.Story())
			require.Len(t, cluster.List[*appsv1.ControllerRevision](w.View(nil)), 1, "the revision was adopted")
			edit(w, image("app:2"))
			simulate.Settle(t, w, p, 500)
			arrived(t, w)
		}
	}
}

func identities(w *simulate.World) map[string]string {
	all := map[string]string{}
	for _, o := range w.Pods() {
		all[o.Name] = string(o.UID) + " on " + o.Spec.NodeName
	}
	return all
}

// A revision that says what the update revision says is as good: its pods get the label, and nothing else.
func TestPodsOfAnEqualRevisionAreRelabelled(t *testing.T) {
	w := given(t, 2, partition(1))
	twin, err := revision.New(w.set, v1beta1.GroupVersion.WithKind(v1beta1.Kind), &w.set.Spec.Template, 3, 5)
	require.NoError(t, err)
	w.revisions = append(w.revisions, twin)
	w.add(twin, span(0, 1), nil)
	labelled := 0
	for a := range judges.Actions(w.plan().Steps, "") {
		label, set := judges.LabelIn(a, contract.RevisionLabel)
		require.True(t, set, a.String())
		assert.Equal(t, w.revisions[1].Name, label)
		assert.Equal(t, action.PatchMetadata, a.Verb)
		labelled++
	}
	assert.Equal(t, 2, labelled)
	assert.Equal(t, int32(2), w.status().UpdatedReplicas)
}

// What OpenKruise wrote stays as it is: references of version v1alpha1, revisions whose data have a
// creation time, pods without readiness gates, the old spelling of annotations.
func TestObjectsOfOpenKruiseAreTakenOverWithoutAWrite(t *testing.T) {
	w := given(t, 2, policy(v1beta1.InPlaceIfPossible), claimed("data"), retention("Delete", "Delete"))
	w.updated(span(0, 1), gen.Change(func(o *corev1.Pod) {
		o.OwnerReferences[0].APIVersion = "apps.kruise.io/v1alpha1"
		o.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}}
		o.Annotations = map[string]string{"inplace-update-state": `{"revision":"` + w.revisions[1].Name + `","updateTimestamp":"2026-01-01T00:00:00Z","lastContainerStatuses":{"main":{"imageID":"x"}}}`}
	}))
	for _, name := range []string{"data-web-0", "data-web-1"} {
		w.claims[name].OwnerReferences = []metav1.OwnerReference{setRef()}
	}
	todo := w.plan()
	assert.Empty(t, todo.Steps, todo.String())
}

// An orphaned revision that is to be raised is adopted first and raised by the next pass: one write each.
func TestAnAdoptedRevisionIsRaisedLater(t *testing.T) {
	w := given(t, 1).updated(at(0))
	s := w.snapshot()
	s.Revisions, s.OrphanRevisions = s.Revisions[:1], s.Revisions[1:]
	s.OrphanRevisions[0].OwnerReferences = nil
	s.Chosen.Renumber, s.Chosen.Number = true, 3
	var verbs []action.Verb
	for a := range judges.Actions(Compute(s).Steps, "") {
		verbs = append(verbs, a.Verb)
	}
	assert.Equal(t, []action.Verb{action.Adopt}, verbs)
}
