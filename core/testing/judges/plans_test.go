package judges_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

func relabelled(pod *corev1.Pod, key, value string) action.Action {
	body := map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}}
	return action.Action{Verb: action.UpdateInPlace, Object: pod, Reason: "Update", Patches: []action.Patch{{Body: body}}}
}

func deleted(o action.Object) action.Action { return action.Action{Verb: action.Delete, Object: o} }

func TestJudgesSeeWhatTheyAreFor(t *testing.T) {
	pod, held := gen.Pod("web-1"), gen.Pod("web-2", gen.Label("hook", "on"))
	carried := gen.Pod("web-3", gen.Revision("web-old"))
	hook := &workload.LifecycleHook{LabelsHandler: map[string]string{"hook": "on"}}
	hooks := &workload.Lifecycle{PreDelete: hook, InPlaceUpdate: hook}
	named := func(name string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	stay := judges.NoLossOfRevisions(revision.Choice{Update: named("web-new"), Current: named("web-now")}, []*corev1.Pod{carried})
	sound := judges.CommonJudges()
	for name, c := range map[string]struct {
		judge judges.Judge
		bad   []action.Action
		good  []action.Action
	}{
		"a second action for a pod": {sound[0], []action.Action{deleted(pod), deleted(pod)}, []action.Action{deleted(pod), deleted(held)}},
		"an action without a write": {sound[1], []action.Action{{Verb: action.PatchMetadata, Object: pod}}, []action.Action{deleted(pod), relabelled(held, "a", "b")}},
		"a held pod is deleted":     {judges.NoBreakOfHooks(hooks), []action.Action{deleted(held)}, []action.Action{deleted(pod)}},
		"a held pod is updated": {
			judges.NoBreakOfHooks(hooks), []action.Action{relabelled(held, contract.RevisionLabel, "x")},
			[]action.Action{relabelled(held, "other", "x"), relabelled(pod, contract.RevisionLabel, "x")},
		},
		"a chosen revision is deleted":   {stay, []action.Action{deleted(named("web-now"))}, []action.Action{deleted(named("web-idle"))}},
		"a revision in use is deleted":   {stay, []action.Action{deleted(named("web-old"))}, []action.Action{deleted(carried)}},
		"nothing is held without a hook": {judges.NoBreakOfHooks(nil), nil, []action.Action{deleted(held)}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, c.judge.Judge([]action.Step{{Actions: c.good}}))
			if c.bad == nil {
				return
			}
			w := judges.New(cluster.Options{Seed: 1})
			w.ApplyJudges([]action.Step{{Actions: c.bad}}, "the plan", c.judge)
			require.Len(t, w.Violations(), 1)
			assert.Contains(t, w.Violations()[0], c.judge.Name)
			assert.Contains(t, w.Violations()[0], "the plan")
		})
	}
}

func TestActionsOfAStep(t *testing.T) {
	steps := []action.Step{{Name: "a", Actions: []action.Action{deleted(gen.Pod("1"))}}, {Name: "b", Actions: []action.Action{deleted(gen.Pod("2"))}}}
	names := func(step string) []string {
		var all []string
		for a := range judges.Actions(steps, step) {
			all = append(all, a.Object.GetName())
		}
		return all
	}
	assert.Equal(t, []string{"2"}, names("b"))
	assert.Equal(t, []string{"1", "2"}, names(""))
}
