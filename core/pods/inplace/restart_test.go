package inplace

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
)

// asking has containers app and side, and asks for restarts by the value.
func asking(name, value string) *Revision {
	return revisionOf(name, variant(templateOf("app", "side"), func(t *corev1.PodTemplateSpec) {
		if value != "" {
			t.Annotations = map[string]string{contract.RestartInPlaceAnnotation: value}
		}
	}))
}

func TestRestartsAreAskedForByContainerID(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to string
		want     map[string]string
	}{
		"all":              {"", "1", map[string]string{"app": "app-0", "side": "side-0"}},
		"another token":    {"1", "2", map[string]string{"app": "app-0", "side": "side-0"}},
		"one":              {"1", "2 side", map[string]string{"side": "side-0"}},
		"other containers": {"2 side", "2 app", map[string]string{"app": "app-0"}},
		"unknown ones":     {"1", "2 nobody", nil},
		"the same":         {"1", "1", nil},
		"no longer":        {"1", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := asking("w-1", tt.from), asking("w-2", tt.to)
			u, err := Diff(from, to, allGates)
			require.NoError(t, err)
			pod := told(runningPod(from.Template, "w-1"))
			require.NoError(t, u.Check(pod))
			assert.Equal(t, tt.want != nil, u.Interrupts(pod))
			pod = written(t, begin(t, pod, from, to, 0, at(0)))
			assert.Equal(t, tt.to, pod.Annotations[contract.RestartInPlaceAnnotation])
			assert.Equal(t, tt.want, record.RestartsUnderWay(pod))
			for container := range tt.want {
				assert.Equal(t, corev1.ConditionFalse, gateOf(pod))
				_, p, _ := refresh(t, pod, at(0))
				assert.Equal(t, completion.ReasonContainer, p.Reason)
				restarted(pod, container, container+"-1")
				told(pod)
			}
			assert.Empty(t, record.RestartsUnderWay(pod))
			pod, p, _ := refresh(t, pod, at(0))
			assert.True(t, p.Complete, p.Message)
			assert.Equal(t, corev1.ConditionTrue, gateOf(pod))
		})
	}
}

func TestARestartNeedsTheNodeAgent(t *testing.T) {
	from, to := asking("w-1", ""), asking("w-2", "1 app")
	u, err := Diff(from, to, allGates)
	require.NoError(t, err)
	pod := runningPod(from.Template, "w-1")
	var missing *NodeAgentMissingError
	require.ErrorAs(t, u.Check(pod), &missing)
	assert.Equal(t, "app", missing.Container)
	require.ErrorAs(t, u.Check(told(runningPod(from.Template, "w-1"), "app")), &missing, "an agent that restarts nothing")
	require.NoError(t, u.Check(told(runningPod(from.Template, "w-1"), "side")), "nobody asks for the other container")

	gone := told(runningPod(from.Template, "w-1"))
	gone.Spec.ReadinessGates = nil
	var not *NotPossibleError
	require.ErrorAs(t, u.Check(gone), &not, "an agent restarts nothing of a pod that it cannot see out of service")

	u, err = Diff(from, to, Options{})
	require.NoError(t, err)
	require.NoError(t, u.Check(pod), "plain metadata without the feature gate")
	assert.False(t, u.Interrupts(pod))

	pod = written(t, begin(t, told(pod), from, to, 0, at(0)))
	delete(pod.Annotations, contract.RuntimeContainersMetaAnnotation)
	_, p, _ := refresh(t, pod, at(time.Minute))
	assert.Equal(t, completion.ReasonNodeAgentMissing, p.Reason, "the agent has gone meanwhile")
}

func TestTheKubeletRestartsWhatGetsAnotherImage(t *testing.T) {
	from := asking("w-1", "")
	to := asking("w-2", "1 app")
	to.Template.Spec.Containers[0].Image = "app:v2"
	u, err := Diff(from, to, allGates)
	require.NoError(t, err)
	pod := runningPod(from.Template, "w-1")
	require.NoError(t, u.Check(pod), "no agent is needed")
	pod = written(t, begin(t, pod, from, to, 0, at(0)))
	restarted(pod, "app", "app-1")
	_, p, _ := refresh(t, pod, at(time.Second))
	assert.True(t, p.Complete, p.Message)

	// Back before the kubelet has done anything: the restart is still owed, by the agent.
	back := asking("w-3", "1 app")
	pod = told(written(t, begin(t, runningPod(from.Template, "w-1"), from, to, 0, at(0))))
	pod = written(t, begin(t, pod, to, back, 0, at(time.Second)))
	assert.Equal(t, map[string]string{"app": "app-0"}, record.RestartsUnderWay(pod))
}

// What another update finds under way it goes on with, as long as its own template still asks for it.
func TestRestartsUnderWaySurviveTheNextUpdate(t *testing.T) {
	from, to := asking("w-1", ""), asking("w-2", "1")
	pod := told(written(t, begin(t, told(runningPod(from.Template, "w-1")), from, to, 0, at(0))))
	restarted(pod, "side", "side-1")
	told(pod)
	for name, tt := range map[string]struct {
		value string
		grace int32
		want  map[string]string
	}{
		"the same value":   {"1", 0, map[string]string{"app": "app-0"}},
		"a grace period":   {"1", 10, map[string]string{"app": "app-0"}},
		"another one":      {"2", 0, map[string]string{"app": "app-0", "side": "side-1"}},
		"no longer wanted": {"", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			next := asking("w-3", tt.value)
			next.Template.Spec.Containers[1].Image = "side:v2"
			pod := written(t, begin(t, pod.DeepCopy(), to, next, tt.grace, at(time.Second)))
			assert.Equal(t, tt.want, record.RestartsUnderWay(pod))
		})
	}
	t.Run("the agent has gone", func(t *testing.T) {
		pod := pod.DeepCopy()
		delete(pod.Annotations, contract.RuntimeContainersMetaAnnotation)
		next := asking("w-3", "1")
		next.Template.Annotations["other"] = "key"
		u, err := Diff(to, next, allGates)
		require.NoError(t, err)
		var missing *NodeAgentMissingError
		require.ErrorAs(t, u.Check(pod), &missing)
		u, err = Diff(to, from, allGates)
		require.NoError(t, err)
		require.NoError(t, u.Check(pod), "who no longer asks needs no agent")
		pod = written(t, begin(t, pod, to, from, 0, at(time.Second)))
		_, p, _ := refresh(t, pod, at(time.Second))
		assert.True(t, p.Complete, p.Message)
	})
}

// A value that was planned and never written has restarted nothing, and the pod has still what it had before.
func TestAValueThatWasOnlyPlannedRestartsNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		restarted []string // for the first value
		values    []string
		want      map[string]string
		later     []string
	}{
		"all is done":                 {[]string{"side", "app"}, []string{"5 nobody", "7"}, nil, nil},
		"the plan names containers":   {[]string{"side", "app"}, []string{"5", "7"}, nil, nil},
		"two plans":                   {[]string{"side", "app"}, []string{"5", "6 app", "7"}, nil, nil},
		"no value was planned":        {[]string{"side", "app"}, []string{"", "7"}, nil, nil},
		"no value in the end":         {[]string{"side", "app"}, []string{"5", ""}, nil, nil},
		"another value":               {[]string{"side", "app"}, []string{"5 nobody", "6 app"}, map[string]string{"app": "app-1"}, nil},
		"one is done, one is owed":    {[]string{"side"}, []string{"5 nobody", "7"}, map[string]string{"app": "app-0"}, nil},
		"owed through two plans":      {[]string{"side"}, []string{"5 nobody", "", "7"}, map[string]string{"app": "app-0"}, nil},
		"one under way, a later one":  {nil, []string{"5 nobody", "7"}, map[string]string{"side": "side-0"}, []string{"app"}},
		"both under the other's plan": {nil, []string{"5", "7"}, map[string]string{"side": "side-0"}, []string{"app"}},
	} {
		t.Run(name, func(t *testing.T) {
			from, now := asking("w-0", ""), asking("w-1", "7")
			pod := told(prioritised(runningPod(from.Template, "w-0"), map[string]string{"side": "p_2", "app": "p_1"}))
			pod = written(t, begin(t, pod, from, now, 0, at(0)))
			for _, container := range tt.restarted {
				restarted(pod, container, container+"-1")
				pod, _, _ = refresh(t, told(pod), at(1*time.Second))
			}
			for i, value := range tt.values {
				next := asking(fmt.Sprintf("w-%d", i+2), value)
				if i < len(tt.values)-1 {
					next.Template.Spec.Containers[1].Image = "side:planned"
				}
				pod = answered(written(t, begin(t, pod, now, next, 10, at(2*time.Second))), at(2*time.Second))
				now = next
			}
			pod, _, _ = refresh(t, pod, at(13*time.Second))
			assert.Empty(t, pod.Annotations[contract.InPlaceUpdateGraceAnnotation])
			assert.Equal(t, tt.values[len(tt.values)-1], pod.Annotations[contract.RestartInPlaceAnnotation])
			assert.Equal(t, tt.want, record.RestartsUnderWay(pod))
			assert.Equal(t, tt.later, stateOf(t, pod).NextContainerRestarts)
		})
	}
}

func TestRestartsFollowLaunchPrioritiesAndGrace(t *testing.T) {
	from, to := asking("w-1", ""), asking("w-2", "1")
	given := func() *corev1.Pod {
		return told(prioritised(runningPod(from.Template, "w-1"), map[string]string{"side": "p_2", "app": "p_1"}))
	}
	pod := written(t, begin(t, given(), from, to, 10, at(0)))
	assert.Empty(t, record.RestartsUnderWay(pod))
	assert.Equal(t, corev1.ConditionFalse, gateOf(pod))
	pod, p, _ := refresh(t, pod, at(10*time.Second))
	assert.Equal(t, completion.ReasonBatch, p.Reason)
	assert.Equal(t, map[string]string{"side": "side-0"}, record.RestartsUnderWay(pod))
	assert.Equal(t, []string{"app"}, stateOf(t, pod).NextContainerRestarts)

	restarted(pod, "side", "side-1")
	running.Status(pod, "side").Ready = false
	_, p, _ = refresh(t, told(pod), at(11*time.Second))
	assert.Equal(t, completion.ReasonNotReady, p.Reason)
	running.Status(pod, "side").Ready = true
	pod, p, _ = refresh(t, pod, at(12*time.Second))
	assert.Equal(t, completion.ReasonBatch, p.Reason)
	assert.Equal(t, map[string]string{"app": "app-0"}, record.RestartsUnderWay(pod))
	restarted(pod, "app", "app-1")
	_, p, _ = refresh(t, told(pod), at(13*time.Second))
	assert.True(t, p.Complete, p.Message)
}

func TestAContainerThatWasNeverStartedIsNotRestarted(t *testing.T) {
	from, to := asking("w-1", ""), asking("w-2", "1 app")
	pod := runningPod(from.Template, "w-1")
	running.Status(pod, "app").ContainerID = ""
	u, err := Diff(from, to, allGates)
	require.NoError(t, err)
	require.NoError(t, u.Check(pod))
	assert.False(t, u.Interrupts(pod))
	c := begin(t, pod, from, to, 0, at(0))
	assert.Equal(t, "1 app", c.Annotation(contract.RestartInPlaceAnnotation))
	assert.Empty(t, record.RestartsUnderWay(written(t, c)))
}

func TestRecordsThatCannotBeReadRestartNothing(t *testing.T) {
	pod := runningPod(asking("w-1", "").Template, "w-1")
	pod.Annotations = map[string]string{contract.InPlaceUpdateStateAnnotation: `{"restarts":["app"]}`}
	assert.Empty(t, record.RestartsUnderWay(pod))
	assert.Equal(t, completion.ReasonUnreadable, func() string {
		pod.Status.Conditions[2].Status = corev1.ConditionFalse
		p := Refresh(action.NewPodChange(pod, at(0)), allGates)
		return p.Reason
	}())
}
