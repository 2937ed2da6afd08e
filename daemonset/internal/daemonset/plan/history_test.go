package plan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// further adds so many revisions that are older than those of the world, with images app:a, app:b and so on.
func (w *world) further(n int) []*appsv1.ControllerRevision {
	var added []*appsv1.ControllerRevision
	for i := range n {
		template := w.set.Spec.Template.DeepCopy()
		template.Spec.Containers[0].Image = "app:" + string(rune('a'+i))
		added = append(added, w.revision(*template, int64(i-n)))
	}
	w.revisions = append(w.revisions, added...)
	return added
}

// changedRevisions are the plan's actions on revisions of the verb, in their order.
func (w *world) changedRevisions(verb action.Verb) []action.Action {
	w.t.Helper()
	var found []action.Action
	for a := range judges.Actions(w.plan().Steps, "") {
		if _, ok := a.Object.(*appsv1.ControllerRevision); ok && a.Verb == verb {
			found = append(found, a)
		}
	}
	return found
}

func (w *world) deletedRevisions() []string {
	w.t.Helper()
	names := []string{}
	for _, a := range w.changedRevisions(action.Delete) {
		names = append(names, a.Object.GetName())
	}
	return names
}

// The limit is one of all older revisions, as in the built-in kind: those that pods are of count, and stay.
func TestOldRevisionsThatPodsAreOfCountAgainstTheLimit(t *testing.T) {
	limited := func(n int32) *world {
		return given(t, 1, deleting, func(s *v1beta1.DaemonSet) { s.Spec.RevisionHistoryLimit = &n }).old("n1")
	}
	w := limited(2)
	idle := w.further(2)
	assert.Equal(t, []string{idle[0].Name}, w.deletedRevisions(), "the oldest")

	w = limited(0)
	idle = w.further(2)
	assert.Equal(t, []string{idle[0].Name, idle[1].Name}, w.deletedRevisions(), "but never one that a pod is of")

	w = limited(3)
	w.further(2)
	assert.Empty(t, w.deletedRevisions())
}

// A new revision has the annotations of the set: tools show from them why the template was changed.
func TestNewRevisionsHaveTheAnnotationsOfTheSet(t *testing.T) {
	w := given(t, 1).updated("n1")
	w.set.Annotations = map[string]string{"kubernetes.io/change-cause": "a new image"}
	s := w.snapshot()
	s.Chosen.Create = true
	chosen := s.Chosen.Update.DeepCopy()
	for a := range judges.Actions(Compute(s).Steps, stepRevision) {
		assert.Equal(t, action.Create, a.Verb)
		assert.Equal(t, w.set.Annotations, a.Object.GetAnnotations())
		assert.Equal(t, chosen, s.Chosen.Update, "the snapshot was changed")
		return
	}
	t.Fatal("no revision is created")
}

// The label by which tools know the revisions of a set is put back. Such a revision is known by its name.
func TestRevisionsWithoutTheirLabelGetIt(t *testing.T) {
	w := given(t, 1).updated("n1")
	delete(w.revisions[0].Labels, contract.RevisionLabel)
	changed := w.changedRevisions(action.PatchMetadata)
	require.Len(t, changed, 1)
	assert.Equal(t, w.revisions[0].Name, changed[0].Object.GetName())
	value, _ := judges.LabelIn(changed[0], contract.RevisionLabel)
	assert.Equal(t, w.revisions[0].Name, value)
}

// Of several revisions with the template the newest stays: pods of the others get its hash first.
func TestOfEqualRevisionsTheNewestStays(t *testing.T) {
	w := given(t, 1)
	double := w.revisions[1].DeepCopy()
	double.Name, double.Revision, double.UID = "web-double", 1, "double"
	double.Labels[contract.RevisionLabel] = "double"
	w.revisions = append(w.revisions, double)
	w.updated("n1", gen.Revision("double"))
	todo := w.plan()
	assert.Empty(t, w.deletedRevisions(), "a pod is of it")
	assert.True(t, slices.ContainsFunc(todo.Steps, func(s action.Step) bool {
		return slices.ContainsFunc(s.Actions, func(a action.Action) bool {
			value, _ := judges.LabelIn(a, contract.RevisionLabel)
			return a.Object.GetName() == w.pods[0].Name && value == revision.Hash(w.revisions[1])
		})
	}), todo.String())

	w.pods = nil
	w.updated("n1")
	assert.Equal(t, []string{"web-double"}, w.deletedRevisions())
}
