package operator_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// onePod wants pod "web", and the change in it.
func onePod(change map[string]any) operator.Planner {
	return operator.PlannerFunc(func(view *operator.View, _ time.Time, _ uint64) ([]action.Step, time.Duration) {
		pod := cluster.Get[*corev1.Pod](view.View, gen.Namespace, "web")
		a := action.Action{Verb: action.Create, Object: gen.Pod("web"), Reason: "Scale"}
		switch {
		case pod != nil && change == nil:
			return nil, 0
		case pod != nil:
			a = action.Action{Verb: action.PatchMetadata, Object: pod, Reason: "Change", Patches: []action.Patch{{Type: types.MergePatchType, Body: change}}}
		}
		return []action.Step{{Name: "web", Actions: []action.Action{a}}}, 0
	})
}

func TestAWorldIsPlayedUntilNothingIsLeftToDo(t *testing.T) {
	w := nodes.New(cluster.Options{Calm: true})
	require.NoError(t, operator.New(w.Cluster(), onePod(nil), operator.Settings{}).Play(20))
	require.Len(t, w.Pods(), 1)
	assert.True(t, cluster.IsTrue(w.Pods()[0], corev1.PodReady), "the kubelet has done its work")
	assert.True(t, w.Quiet())
	assert.Equal(t, 1, w.Writes(cluster.OperatorActor))
}

// The planner sees its own write at once, and does not wait until it wants to be asked again.
func TestAnOperatorSeesItsOwnWritesAtOnce(t *testing.T) {
	w := nodes.New(cluster.Options{Calm: true})
	changed := func(pod *corev1.Pod) bool { return pod != nil && pod.Annotations["turn"] == "3" }
	planner := operator.PlannerFunc(func(view *operator.View, now time.Time, seed uint64) ([]action.Step, time.Duration) {
		pod := cluster.Get[*corev1.Pod](view.View, gen.Namespace, "web")
		if changed(pod) {
			return nil, 0
		}
		turn := 0
		if pod != nil {
			turn, _ = strconv.Atoi(pod.Annotations["turn"])
		}
		change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"turn": strconv.Itoa(turn + 1)}}}
		steps, _ := onePod(change).Plan(view, now, seed)
		return steps, time.Minute
	})
	require.NoError(t, operator.New(w.Cluster(), planner, operator.Settings{Coalesce: true}).Play(50))
	require.True(t, changed(w.Pods()[0]))
	assert.Less(t, w.Now().Sub(w.Pods()[0].CreationTimestamp.Time), time.Minute)
}

func TestAPlannerThatNeverEndsIsStopped(t *testing.T) {
	turn := 0
	planner := operator.PlannerFunc(func(view *operator.View, now time.Time, seed uint64) ([]action.Step, time.Duration) {
		turn++
		return onePod(map[string]any{"metadata": map[string]any{"labels": map[string]any{"turn": strconv.Itoa(turn)}}}).Plan(view, now, seed)
	})
	w := nodes.New(cluster.Options{Calm: true})
	require.ErrorIs(t, operator.New(w.Cluster(), planner, operator.Settings{}).Play(20), operator.ErrUnsettled)
	assert.Equal(t, 20, turn)
}

func TestAWriteThatNoServerTakesEndsThePlay(t *testing.T) {
	w := nodes.New(cluster.Options{Calm: true})
	misspelt := onePod(map[string]any{"metadata": map[string]any{"lables": map[string]any{"a": "b"}}})
	err := operator.New(w.Cluster(), misspelt, operator.Settings{}).Play(20)
	require.ErrorIs(t, err, operator.ErrViolation)
	assert.ErrorContains(t, err, "a write that no server takes")
}

func TestADeadOperatorWritesNothingUntilItRestarts(t *testing.T) {
	w := nodes.New(cluster.Options{Calm: true})
	o := operator.New(w.Cluster(), onePod(nil), operator.Settings{
		Send: func(operator.Request) (action.Object, error) { return nil, operator.ErrCrash },
	})
	out, _ := o.Pass()
	assert.True(t, out.Crashed)
	assert.True(t, o.Dead())
	out, _ = o.Pass()
	assert.Equal(t, 0, out.Done)
	assert.Empty(t, w.Pods())
	o.Restart()
	assert.False(t, o.Dead())
}

func TestAnOperatorWritesUnderItsName(t *testing.T) {
	w := nodes.New(cluster.Options{Calm: true})
	require.NoError(t, operator.New(w.Cluster(), onePod(nil), operator.Settings{Actor: "another"}).Play(20))
	require.Len(t, w.Pods(), 1)
	assert.Equal(t, "another", w.Events("Pod")[0].Actor)
	assert.Zero(t, w.Writes(cluster.OperatorActor))
	assert.Contains(t, w.Story(), "another")
}

func TestThePatchesOfAnActionBeginTogether(t *testing.T) {
	w := nodes.New(cluster.Options{Calm: true})
	revision, err := w.Create(cluster.UserActor, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: gen.Namespace}})
	require.NoError(t, err)
	var begun []time.Time
	var o *operator.Operator
	o = operator.New(w.Cluster(), onePod(nil), operator.Settings{Send: func(r operator.Request) (action.Object, error) {
		begun = append(begun, r.Begun)
		w.Advance(time.Second)
		return o.Deliver(r)
	}})
	first := w.Now()
	out, _ := o.Run([]action.Step{{Actions: []action.Action{{
		Verb:   action.PatchMetadata,
		Object: revision,
		DryRun: true,
		Patches: []action.Patch{
			{Type: types.MergePatchType, Body: map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "1"}}}},
			{Type: types.MergePatchType, Body: map[string]any{"metadata": map[string]any{"labels": map[string]any{"b": "2"}}}},
		},
	}}}}, nil)
	require.NoError(t, out.Outcomes[0].Err)
	assert.Equal(t, []time.Time{{}, first.Add(time.Second), first.Add(time.Second)}, begun, "a dry run, and two patches")
}
