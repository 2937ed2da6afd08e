package simulate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

func relabelled(pod *corev1.Pod, key, value string) action.Action {
	body := map[string]any{"metadata": map[string]any{"labels": map[string]any{key: value}}}
	return action.Action{Verb: action.UpdateInPlace, Object: pod, Reason: "Update", Patches: []action.Patch{{Body: body}}}
}

func deleted(o action.Object) action.Action { return action.Action{Verb: action.Delete, Object: o} }

func TestJudgesSeeWhatTheyAreFor(t *testing.T) {
	pod, held := gen.Pod("web-1"), gen.Pod("web-2", gen.Label(simulate.HookLabel, simulate.HookTaken))
	carried := gen.Pod("web-3", gen.Revision("web-old"))
	hooks := &workload.Lifecycle{PreDelete: simulate.Hook(), InPlaceUpdate: simulate.Hook()}
	named := func(name string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	stay := simulate.NoLossOfRevisions(revision.Choice{Update: named("web-new"), Current: named("web-now")}, []*corev1.Pod{carried})
	sound := simulate.CommonJudges()
	for name, c := range map[string]struct {
		judge simulate.Judge
		bad   []action.Action
		good  []action.Action
	}{
		"a second action for a pod": {sound[0], []action.Action{deleted(pod), deleted(pod)}, []action.Action{deleted(pod), deleted(held)}},
		"an action without a write": {sound[1], []action.Action{{Verb: action.PatchMetadata, Object: pod}}, []action.Action{deleted(pod), relabelled(held, "a", "b")}},
		"a held pod is deleted":     {simulate.NoBreakOfHooks(hooks), []action.Action{deleted(held)}, []action.Action{deleted(pod)}},
		"a held pod is updated": {
			simulate.NoBreakOfHooks(hooks), []action.Action{relabelled(held, contract.RevisionLabel, "x")},
			[]action.Action{relabelled(held, "other", "x"), relabelled(pod, contract.RevisionLabel, "x")},
		},
		"a chosen revision is deleted":   {stay, []action.Action{deleted(named("web-now"))}, []action.Action{deleted(named("web-idle"))}},
		"a revision in use is deleted":   {stay, []action.Action{deleted(named("web-old"))}, []action.Action{deleted(carried)}},
		"nothing is held without a hook": {simulate.NoBreakOfHooks(nil), nil, []action.Action{deleted(held)}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, c.judge.Judge([]action.Step{{Actions: c.good}}))
			if c.bad == nil {
				return
			}
			w := simulate.New(cluster.Options{Seed: 1})
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
		for a := range simulate.Actions(steps, step) {
			all = append(all, a.Object.GetName())
		}
		return all
	}
	assert.Equal(t, []string{"2"}, names("b"))
	assert.Equal(t, []string{"1", "2"}, names(""))
}

func TestHooksAreAnsweredAfterAWhile(t *testing.T) {
	hooks := &workload.Lifecycle{InPlaceUpdate: simulate.Hook()}
	for name, c := range map[string]struct {
		state string
		had   string
		want  string
	}{
		"released before the update":   {contract.LifecyclePreparingUpdate, simulate.HookTaken, ""},
		"released before the deletion": {contract.LifecyclePreparingDelete, simulate.HookTaken, ""},
		"taken after the update":       {contract.LifecycleUpdated, "", simulate.HookTaken},
		"left alone in service":        {contract.LifecycleNormal, simulate.HookTaken, simulate.HookTaken},
	} {
		t.Run(name, func(t *testing.T) {
			w := simulate.New(cluster.Options{Seed: 1, Calm: true})
			w.AnswerHooks(3*time.Second, func() *workload.Lifecycle { return hooks })
			pod := gen.Pod("web-1", gen.Label("app", "web"))
			if c.had != "" {
				pod.Labels[simulate.HookLabel] = c.had
			}
			added := w.Add(pod)
			_, err := w.Patch(cluster.OperatorActor, added, relabelled(pod, contract.LifecycleStateLabel, c.state).Patches[0])
			require.NoError(t, err)
			w.Advance(2 * time.Second)
			assert.Equal(t, c.had, w.Latest(added).GetLabels()[simulate.HookLabel])
			w.Advance(2 * time.Second)
			assert.Equal(t, c.want, w.Latest(added).GetLabels()[simulate.HookLabel])
		})
	}
}

// Where somebody took the labels off a pod and puts them back, its hook is answered then.
func TestHooksAreAnsweredWhoeverBringsThemBack(t *testing.T) {
	w := simulate.New(cluster.Options{Seed: 1, Calm: true})
	pod := w.Add(gen.Pod("web-1", gen.Lifecycle(contract.LifecyclePreparingDelete), gen.Label(simulate.HookLabel, simulate.HookTaken)))
	w.AnswerHooks(3*time.Second, func() *workload.Lifecycle { return &workload.Lifecycle{PreDelete: simulate.Hook()} })
	simulate.StripsLabels(20*time.Second)(w, rand.New(rand.NewPCG(1, 1)))
	require.Empty(t, w.Latest(pod).GetLabels())
	w.Advance(21 * time.Second)
	assert.Equal(t, simulate.HookTaken, w.Latest(pod).GetLabels()[simulate.HookLabel])
	w.Advance(3 * time.Second)
	assert.Equal(t, contract.LifecyclePreparingDelete, w.Latest(pod).GetLabels()[contract.LifecycleStateLabel])
	assert.NotContains(t, w.Latest(pod).GetLabels(), simulate.HookLabel, "the story:\n%s", w.Story())
}

// courses of the small planner, right and wrong.
func course(b bugs) scenarios.Course {
	return scenarios.Course{
		Name: "a new image",
		Start: func(_ testing.TB, o cluster.Options) (*simulate.World, operator.Planner) {
			w := newWorld(o, 3)
			w.Edits(time.Second, simulate.Edit{What: "wants app:2", Do: func() { wants(w, "app:2") }})
			return w, &miniSet{bugs: b}
		},
		Arrived: func(t testing.TB, w *simulate.World) {
			t.Helper()
			for _, pod := range w.Pods() {
				assert.Equal(t, "app:2", pod.Spec.Containers[0].Image)
			}
		},
	}
}

func TestCoursesEndTheSameWhateverHappens(t *testing.T) {
	courses := []scenarios.Course{course(bugs{})}
	scenarios.CheckCrashes(t, courses)
	scenarios.CheckFaults(t, courses, 2)
	scenarios.CheckReplays(t, courses)
}

func TestWalksTellWhereTheyFail(t *testing.T) {
	walk := simulate.Walk{
		Count: 2, Faults: simulate.AllFaults, Describe: func(*simulate.World) string { return "three pods" },
		Start: func(t testing.TB, seed uint64) (*simulate.World, operator.Planner) {
			return course(bugs{}).Start(t, cluster.Options{Seed: seed})
		},
		Unarrived: func(*simulate.World) []string { return nil },
	}
	walk.Run(t)
	walk.Unarrived = func(*simulate.World) []string { return []string{"lost"} }
	failed := &failing{TB: t}
	assert.Panics(t, func() { walk.Play(failed, 7) })
	assert.Contains(t, failed.text, "did not arrive: lost")
	assert.Contains(t, failed.text, "-walk=7, spec three pods")
}

// failing is a test that fails without failing the one around it.
type failing struct {
	testing.TB
	text string
}

func (*failing) Helper() {}

func (f *failing) Errorf(format string, args ...any) { f.text += fmt.Sprintf(format, args...) }

func (f *failing) FailNow() { panic("failed") }
