package simulate_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

func allUpdated(t testing.TB, w *simulate.World) {
	t.Helper()
	pods := w.View(nil).Available("set", 0)
	require.Len(t, pods, wantedReplicas(w.View(nil)), "the story:\n%s", w.Story())
	for _, pod := range pods {
		assert.Equal(t, "app:v2", pod.Spec.Containers[0].Image)
	}
}

func TestStoryOfARolloutIsGolden(t *testing.T) {
	w := newWorld(cluster.Options{Calm: true, Seed: 1}, 3)
	simulate.Settle(t, w, &miniSet{}, 100)
	wants(w, "app:v2")
	simulate.Settle(t, w, &miniSet{}, 200)
	allUpdated(t, w)
	scalesTo(t, w, 2)
	simulate.Settle(t, w, &miniSet{}, 200)
	simulate.CompareStory(t, w, "testdata/rollout.txt")
}

func TestPassesComeWhenThePlannerWantsToWake(t *testing.T) {
	set := newSet(3, "app:v1")
	set.Spec.MinReadySeconds = 600
	w := simulate.New(cluster.Options{Seed: 1}, set)
	simulate.Settle(t, w, &miniSet{}, 500)
	assert.Len(t, w.View(nil).Available("set", 600), 3)
	wants(w, "app:v2")
	simulate.Settle(t, w, &miniSet{}, 500)
	for _, pod := range w.View(nil).Available("set", 600) {
		assert.Equal(t, "app:v2", pod.Spec.Containers[0].Image)
	}
	assert.Greater(t, w.Now().Sub(set.CreationTimestamp.Time), 20*time.Minute, "one after the other, ten minutes each")
}

func scalesTo(t *testing.T, w *simulate.World, replicas int32) {
	t.Helper()
	require.NoError(t, cluster.Change(w, cluster.UserActor, "", newSet(0, ""), func(s *appsv1.ReplicaSet) { s.Spec.Replicas = &replicas }))
}

func TestSameSeedTellsTheSameStory(t *testing.T) {
	play := func() string {
		w := newWorld(cluster.Options{Seed: 7, Flaps: 0.3}, 4)
		w.After(20*time.Second, func() { wants(w, "app:v2") })
		simulate.SettleUnder(t, w, &miniSet{}, simulate.AllFaults(7), 2000)
		return w.Story()
	}
	first := play()
	assert.Equal(t, first, play())
}

func TestCrashAfterAnyWriteEndsTheSame(t *testing.T) {
	for _, calm := range []bool{true, false} {
		simulate.CrashSweep(t, func() (*simulate.World, operator.Planner) {
			w := newWorld(cluster.Options{Calm: calm, Seed: 3}, 4)
			w.After(time.Minute, func() { wants(w, "app:v2") })
			return w, &miniSet{}
		}, func(w *simulate.World) { allUpdated(t, w) })
	}
}

func TestRolloutsSettleUnderFaults(t *testing.T) {
	simulate.Explore(t, 200, func(seed uint64) (*simulate.World, operator.Planner, simulate.Faults) {
		w := newWorld(cluster.Options{Seed: seed, Flaps: 0.1}, 5)
		w.After(time.Duration(seed%30)*time.Second, func() { wants(w, "app:v2") })
		return w, &miniSet{}, simulate.AllFaults(seed)
	}, allUpdated)
}

func TestRolloutsSettleAmongForeignActors(t *testing.T) {
	simulate.Explore(t, 100, func(seed uint64) (*simulate.World, operator.Planner, simulate.Faults) {
		w := newWorld(cluster.Options{Seed: seed}, 5)
		w.After(10*time.Second, func() { wants(w, "app:v2") })
		f := simulate.AllFaults(seed)
		f.Foreign = 0.2
		f.Actors = []simulate.Actor{simulate.DeletesPods, simulate.Orphans, simulate.AddsFinalizer("example.com/hold", time.Minute), simulate.Relabels("example.com/x", "y")}
		return w, &miniSet{}, f
	}, allUpdated)
}

func TestBadImageIsLeftBehindByAGoodOne(t *testing.T) {
	for name, bad := range map[string]cluster.Image{
		"crash loop": {CrashLoop: true}, "pull error": {PullError: true}, "never ready": {NeverReady: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(cluster.Options{Seed: 5, Images: map[string]cluster.Image{"app:bad": bad}}, 3)
			simulate.Settle(t, w, &miniSet{}, 500)
			wants(w, "app:bad")
			simulate.Settle(t, w, &miniSet{}, 500)
			assert.Len(t, w.View(nil).Available("set", 0), 2, "one pod is stuck at the bad image")
			wants(w, "app:v2")
			simulate.Settle(t, w, &miniSet{}, 500)
			allUpdated(t, w)
		})
	}
}

func TestPlantedBugsAreCaught(t *testing.T) {
	tests := map[string]struct {
		bugs   bugs
		faults func(seed uint64) simulate.Faults
		want   string
	}{
		"budget off by one":   {bugs: bugs{budgetOffByOne: true}, want: "unavailable pods: 2, at most 1"},
		"ready too early":     {bugs: bugs{readyTooEarly: true}, want: "was not yet seen"},
		"image first":         {bugs: bugs{imageFirst: true}, want: "while InPlaceUpdateReady is True"},
		"write for nought":    {bugs: bugs{writesForNought: true}, want: "changes nothing"},
		"memory alone":        {bugs: bugs{forgetsScaling: true}, faults: deletesPods, want: "wants to write although"},
		"no freshness gate":   {faults: withoutFreshness, want: "pods: "},
		"doubt is forgotten":  {faults: withoutLostAnswers, want: "pods: "},
		"no bug, no complain": {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			caught := ""
			for seed := uint64(1); seed <= 50 && caught == ""; seed++ {
				w := newWorld(cluster.Options{Seed: seed}, 4)
				w.After(20*time.Second, func() { wants(w, "app:v2") })
				faults := simulate.Faults{Seed: seed}
				if tt.faults != nil {
					faults = tt.faults(seed)
				}
				if err := simulate.NewOperator(w, &miniSet{bugs: tt.bugs}, faults).Settle(1000); err != nil {
					caught = err.Error()
				}
			}
			if tt.want == "" {
				assert.Empty(t, caught)
				return
			}
			assert.Contains(t, caught, tt.want)
		})
	}
}

func withoutFreshness(seed uint64) simulate.Faults {
	return simulate.Faults{Seed: seed, Lag: 5, NoFreshness: true}
}

func withoutLostAnswers(seed uint64) simulate.Faults {
	return simulate.Faults{Seed: seed, Lag: 5, Timeout: 0.2, ForgetsLostAnswers: true}
}

func deletesPods(seed uint64) simulate.Faults {
	return simulate.Faults{Seed: seed, Foreign: 0.1, Actors: []simulate.Actor{simulate.DeletesPods}}
}

func TestDeletingTheOwnerEndsThePods(t *testing.T) {
	w := newWorld(cluster.Options{Seed: 2}, 3)
	simulate.Settle(t, w, &miniSet{}, 500)
	require.NoError(t, w.Delete(cluster.UserActor, newSet(0, "")))
	simulate.Settle(t, w, &miniSet{}, 500)
	assert.Empty(t, w.Pods())
}

func TestPlannersThatChangeWhatTheyReadAreFoundOut(t *testing.T) {
	w := simulate.New(cluster.Options{DetectMutation: true}, newSet(1, "app:v1"))
	guilty := operator.PlannerFunc(func(v *operator.View, _ time.Time, _ uint64) ([]action.Step, time.Duration) {
		cluster.Get[*appsv1.ReplicaSet](v.View, namespace, setName).Spec.MinReadySeconds = 5
		return nil, 0
	})
	err := simulate.NewOperator(w, guilty, simulate.Faults{}).Settle(10)
	require.ErrorContains(t, err, "may only read")

	w = simulate.New(cluster.Options{DetectMutation: true}, newSet(3, "app:v1"))
	simulate.Settle(t, w, &miniSet{}, 500)
}

// Planners see of a pod what a cache shows, and those that change it are found out, too.
func TestPlannersSeeWhatACacheShows(t *testing.T) {
	w := simulate.New(cluster.Options{DetectMutation: true}, newSet(1, "app:v1"))
	simulate.Settle(t, w, &miniSet{}, 500)
	require.NotEmpty(t, w.Pods()[0].Status.PodIP)
	guilty := operator.PlannerFunc(func(v *operator.View, _ time.Time, _ uint64) ([]action.Step, time.Duration) {
		pod := cluster.List[*corev1.Pod](v.View)[0]
		assert.Empty(t, pod.Status.PodIP)
		assert.NotEmpty(t, pod.Status.ContainerStatuses)
		pod.Spec.NodeName = "elsewhere"
		return nil, 0
	})
	err := simulate.NewOperator(w, guilty, simulate.Faults{}).Settle(10)
	require.ErrorContains(t, err, "may only read")
}

func TestAdmissionBlocksOneWriteAndNotTheOthers(t *testing.T) {
	w := simulate.New(cluster.Options{Calm: true, Admission: func(_ *cluster.World, e cluster.Event) error {
		if e.Type == cluster.Modified && e.Object.GetName() == "web-1" {
			return errors.New("a budget forbids it")
		}
		return nil
	}})
	var step action.Step
	for _, name := range []string{"web-1", "web-2"} {
		step.Actions = append(step.Actions, action.Action{
			Verb: action.PatchMetadata, Object: create(t, w, bare(name)), Patches: []action.Patch{{Body: body{"metadata": body{"labels": body{"a": "b"}}}}},
		})
	}
	out := simulate.NewOperator(w, nil, simulate.Faults{}).Run([]action.Step{step})
	assert.Equal(t, operator.Outcome{Done: 1, Blocked: 1}, out)
	assert.Equal(t, "b", latest(w, "web-2").Labels["a"])
	assert.NotContains(t, latest(w, "web-1").Labels, "a")
}

func TestStepsEndAsPackageExecuteEndsThem(t *testing.T) {
	w := simulate.New(cluster.Options{Calm: true})
	stale, theirs := create(t, w, owned("stale")), create(t, w, bare("theirs"))
	require.NoError(t, cluster.Change(w, cluster.UserActor, "", bare("stale"), func(p *corev1.Pod) { p.Labels["x"] = "y" }))
	label := func(o action.Object) action.Action {
		return action.Action{Verb: action.PatchMetadata, Object: o, Independent: true, Patches: []action.Patch{{Body: body{"metadata": body{"labels": body{"a": "b"}}}}}}
	}
	makes := func(name string) action.Action {
		return action.Action{Verb: action.Create, Object: bare(name), Independent: true}
	}
	overdue := func(a action.Action) action.Action {
		a.Deadline = w.Now()
		return a
	}
	tests := map[string]struct {
		steps []action.Step
		want  operator.Outcome
	}{
		"a stale pod is its own affair": {
			steps: []action.Step{{Actions: []action.Action{label(stale), makes("a1")}}, {Actions: []action.Action{makes("a2")}}},
			want:  operator.Outcome{Stale: 1, Done: 2},
		},
		"what exists already ends the plan after its step": {
			steps: []action.Step{{Actions: []action.Action{{Verb: action.Create, Object: owned("stale"), Independent: true}, makes("b1")}}, {Actions: []action.Action{makes("b2")}}},
			want:  operator.Outcome{Stale: 1, Done: 1},
		},
		"a name that somebody else has is its own affair, even in a slow start": {
			steps: []action.Step{
				{SlowStart: true, Actions: []action.Action{{Verb: action.Create, Object: owned(theirs.GetName()), Independent: true}, makes("f1")}},
				{Actions: []action.Action{makes("f2")}},
			},
			want: operator.Outcome{Blocked: 1, Done: 2},
		},
		"a slow start stops at once": {
			steps: []action.Step{{SlowStart: true, Actions: []action.Action{{Verb: action.Create, Object: owned("stale"), Independent: true}, makes("c1")}}},
			want:  operator.Outcome{Stale: 1},
		},
		"what time has overtaken is its own affair": {
			steps: []action.Step{{Actions: []action.Action{overdue(makes("e1")), makes("e2")}}, {Actions: []action.Action{makes("e3")}}},
			want:  operator.Outcome{Stale: 1, Done: 2},
		},
		"what must exist first may exist": {
			steps: []action.Step{{Actions: []action.Action{{Verb: action.Create, Object: bare("d1"), Prerequisites: []action.Object{bare("stale")}}}}},
			want:  operator.Outcome{Done: 1},
		},
		"a dead owner adopts nothing": {
			steps: []action.Step{{Actions: []action.Action{{
				Verb: action.Adopt, Object: w.Latest(stale), Patches: []action.Patch{{Body: body{"metadata": body{"ownerReferences": []any{
					body{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": setName, "uid": "gone", "controller": true},
				}}}}},
			}}}},
			want: operator.Outcome{Stale: 1},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, simulate.NewOperator(w, nil, simulate.Faults{}).Run(tt.steps))
		})
	}
}

// What is refused to all is tried no more often than package execute would.
func TestRefusalsInARowEndAStep(t *testing.T) {
	w := simulate.New(cluster.Options{Calm: true, Admission: func(*cluster.World, cluster.Event) error { return errors.New("quota") }})
	var step action.Step
	for i := range 100 {
		step.Actions = append(step.Actions, action.Action{Verb: action.Create, Object: bare(fmt.Sprint("web-", i))})
	}
	step.SlowStart = true
	assert.Equal(t, operator.Outcome{Blocked: 1}, simulate.NewOperator(w, nil, simulate.Faults{}).Run([]action.Step{step}))
	step.SlowStart = false
	assert.Equal(t, operator.Outcome{Blocked: 6}, simulate.NewOperator(w, nil, simulate.Faults{}).Run([]action.Step{step}), "four at first, and two more until three are refused")
}

// A crash finds several actions half done, and not only the last one that was begun.
func TestActionsOfAStepAreUnderWayTogether(t *testing.T) {
	halfDone := map[int]bool{}
	for seed := range uint64(50) {
		w := simulate.New(cluster.Options{Seed: seed})
		var step action.Step
		for _, name := range []string{"web-1", "web-2", "web-3"} {
			c := action.NewPodChange(create(t, w, bare(name)).(*corev1.Pod), metav1.NewTime(w.Now()))
			c.SetCondition("Gate", corev1.ConditionTrue, "", "")
			c.SetImage("main", "app:v2")
			step.Actions = append(step.Actions, action.Action{Verb: action.UpdateInPlace, Object: latest(w, name), Patches: c.Patches()})
			require.Len(t, c.Patches(), 2)
		}
		out := simulate.NewOperator(w, nil, simulate.Faults{CrashAfter: 3}).Run([]action.Step{step})
		require.True(t, out.Crashed)
		n := 0
		for _, pod := range w.Pods() {
			if len(pod.Status.Conditions) > 0 && pod.Spec.Containers[0].Image == "app:v1" {
				n++
			}
		}
		halfDone[n] = true
	}
	assert.Equal(t, map[int]bool{1: true, 3: true}, halfDone, "one whole pod and half a one, or three halves")
}

// However often the world moves on while the operator writes, no request takes longer than one may: what was planned
// before it is not much older.
func TestRequestsEndInTime(t *testing.T) {
	w := simulate.New(cluster.Options{})
	w.After(time.Hour, func() {})
	create := operator.PlannerFunc(func(*operator.View, time.Time, uint64) ([]action.Step, time.Duration) {
		return []action.Step{{Actions: []action.Action{{Verb: action.Create, Object: bare("a")}}}}, 0
	})
	begin := w.Now()
	simulate.NewOperator(w, create, simulate.Faults{Interleave: 1}).Pass()
	assert.LessOrEqual(t, w.Now().Sub(begin), 7*time.Second)
}

func BenchmarkRolloutOfTenPods(b *testing.B) {
	for b.Loop() {
		w := simulate.New(cluster.Options{Seed: 1}, newSet(10, "app:v1"))
		simulate.Settle(b, w, &miniSet{}, 1000)
		if err := cluster.Change(w, cluster.UserActor, "", newSet(0, ""), func(s *appsv1.ReplicaSet) {
			s.Spec.Template.Spec.Containers[0].Image = "app:v2"
		}); err != nil {
			b.Fatal(err)
		}
		simulate.Settle(b, w, &miniSet{}, 1000)
	}
}
