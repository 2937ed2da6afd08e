package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

var now = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

const (
	preparingNormal = contract.LifecyclePreparingNormal
	normal          = contract.LifecycleNormal
	preparingUpdate = contract.LifecyclePreparingUpdate
	updating        = contract.LifecycleUpdating
	updated         = contract.LifecycleUpdated
	preparingDelete = contract.LifecyclePreparingDelete
)

func labelHook(markNotReady bool) *workload.LifecycleHook {
	return &workload.LifecycleHook{LabelsHandler: map[string]string{"hook": "on"}, MarkPodNotReady: markNotReady}
}

func finalizerHook() *workload.LifecycleHook {
	return &workload.LifecycleHook{FinalizersHandler: []string{"example.io/block"}}
}

func updateHooked(h *workload.LifecycleHook) *workload.Lifecycle {
	return &workload.Lifecycle{InPlaceUpdate: h}
}

type podOption func(*corev1.Pod)

func hookTaken(p *corev1.Pod)      { p.Labels["hook"] = "on" }
func finalizerTaken(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "example.io/block") }
func unscheduled(p *corev1.Pod)    { p.Spec.NodeName = "" }
func held(key string) podOption {
	return func(p *corev1.Pod) {
		setCondition(p, corev1.ConditionFalse, fmt.Sprintf(`[{"userAgent":"Lifecycle","key":"%s"}]`, key))
	}
}

func setCondition(p *corev1.Pod, status corev1.ConditionStatus, message string) {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == contract.KruisePodReady {
			p.Status.Conditions[i].Status, p.Status.Conditions[i].Message = status, message
		}
	}
}

// podIn is a scheduled pod in the state with readiness gate KruisePodReady; an empty state sets no label.
func podIn(state string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{}}}
	if state != "" {
		p.Labels[contract.LifecycleStateLabel] = state
	}
	p.Spec.NodeName = "node"
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.KruisePodReady}}
	p.Status.Conditions = []corev1.PodCondition{{Type: contract.KruisePodReady, Status: corev1.ConditionTrue}}
	for _, option := range options {
		option(p)
	}
	return p
}

// after is the pod with the change made, as far as this package changes pods.
func after(c *action.PodChange) *corev1.Pod {
	p := c.Pod.DeepCopy()
	for _, key := range []string{contract.LifecycleStateLabel, "hook"} {
		if value, ok := c.LookupLabel(key); ok {
			p.Labels[key] = value
		} else {
			delete(p.Labels, key)
		}
	}
	if !c.HasFinalizer("example.io/block") {
		p.Finalizers = nil
	} else if len(p.Finalizers) == 0 {
		finalizerTaken(p)
	}
	if condition := c.Condition(contract.KruisePodReady); condition != nil {
		setCondition(p, condition.Status, condition.Message)
	}
	p.Annotations = map[string]string{}
	if value, ok := c.LookupAnnotation(contract.PreNormalPendingAnnotation); ok {
		p.Annotations[contract.PreNormalPendingAnnotation] = value
	}
	return p
}

func notReadyMessage(c *action.PodChange) string { return c.Condition(contract.KruisePodReady).Message }

func TestRefresh(t *testing.T) {
	tests := []struct {
		name       string
		pod        *corev1.Pod
		lifecycle  *workload.Lifecycle
		incomplete bool
		want       string
	}{
		{name: "new pod waits for its node", pod: podIn(preparingNormal, unscheduled), want: preparingNormal},
		{name: "scheduled pod is normal", pod: podIn(preparingNormal), want: normal},
		{name: "other hooks do not hold a new pod", pod: podIn(preparingNormal), lifecycle: updateHooked(labelHook(false)), want: normal},
		{name: "preNormal holds until its label is there", pod: podIn(preparingNormal), lifecycle: &workload.Lifecycle{PreNormal: labelHook(false)}, want: preparingNormal},
		{name: "preNormal label there", pod: podIn(preparingNormal, hookTaken), lifecycle: &workload.Lifecycle{PreNormal: labelHook(false)}, want: normal},
		{name: "preNormal holds until its finalizer is there", pod: podIn(preparingNormal), lifecycle: &workload.Lifecycle{PreNormal: finalizerHook()}, want: preparingNormal},
		{name: "preNormal finalizer there", pod: podIn(preparingNormal, finalizerTaken), lifecycle: &workload.Lifecycle{PreNormal: finalizerHook()}, want: normal},
		{name: "preNormal without handlers is all hooked", pod: podIn(preparingNormal), lifecycle: &workload.Lifecycle{PreNormal: &workload.LifecycleHook{}}, want: normal},
		{name: "a pod taken back in the middle of its update waits for it", pod: podIn(preparingNormal), incomplete: true, want: preparingNormal},
		{name: "update under way", pod: podIn(updating), incomplete: true, want: updating},
		{name: "update complete without lifecycle", pod: podIn(updating), want: normal},
		{name: "update complete, hook taken early", pod: podIn(updating, hookTaken), lifecycle: updateHooked(labelHook(false)), want: normal},
		{name: "update complete, hook released", pod: podIn(updating), lifecycle: updateHooked(labelHook(false)), want: updated},
		{name: "update complete, lifecycle without that hook", pod: podIn(updating), lifecycle: &workload.Lifecycle{}, want: updated},
		{name: "updated without lifecycle", pod: podIn(updated), want: normal},
		{name: "updated without that hook", pod: podIn(updated), lifecycle: &workload.Lifecycle{}, want: normal},
		{name: "updated, hook taken again", pod: podIn(updated, hookTaken), lifecycle: updateHooked(labelHook(false)), want: normal},
		{name: "updated, hook not taken again", pod: podIn(updated), lifecycle: updateHooked(labelHook(false)), want: updated},
		{name: "normal stays", pod: podIn(normal), want: normal},
		{name: "no label is normal", pod: podIn(""), want: normal},
		{name: "preparing update needs a decision", pod: podIn(preparingUpdate), want: preparingUpdate},
		{name: "preparing delete needs a decision", pod: podIn(preparingDelete), want: preparingDelete},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := action.NewPodChange(tt.pod, now)
			changed := Refresh(c, tt.lifecycle, !tt.incomplete)
			assert.Equal(t, tt.want, stateAfter(c))
			assert.Equal(t, State(tt.pod) != tt.want, changed)
			assert.Equal(t, changed, !c.Empty(), "the same state writes nothing")
			if changed {
				assert.Equal(t, "2026-01-01T12:00:00Z", c.Annotation(contract.LifecycleTimestampAnnotation))
			}
		})
	}
}

func TestBeginUpdate(t *testing.T) {
	hook := updateHooked(labelHook(true))
	tests := []struct {
		name      string
		pod       *corev1.Pod
		lifecycle *workload.Lifecycle
		want      string
		proceed   bool
		message   string
	}{
		{name: "normal, not hooked", pod: podIn(normal), lifecycle: hook, want: updating, proceed: true},
		{name: "normal, no lifecycle", pod: podIn(normal, hookTaken), want: updating, proceed: true},
		{name: "no label", pod: podIn(""), want: updating, proceed: true},
		{name: "preparing normal, not hooked", pod: podIn(preparingNormal), lifecycle: hook, want: updating, proceed: true},
		{name: "normal, hooked", pod: podIn(normal, hookTaken), lifecycle: hook, want: preparingUpdate,
			message: `[{"userAgent":"Lifecycle","key":"preUpdateHook"}]`},
		{name: "preparing normal, hooked", pod: podIn(preparingNormal, hookTaken), lifecycle: updateHooked(labelHook(false)), want: preparingUpdate},
		{name: "normal, hooked by finalizer", pod: podIn(normal, finalizerTaken), lifecycle: updateHooked(finalizerHook()), want: preparingUpdate},
		{name: "still hooked", pod: podIn(preparingUpdate, hookTaken), lifecycle: updateHooked(labelHook(false)), want: preparingUpdate},
		{name: "released, key stays for the update", pod: podIn(preparingUpdate, held("preUpdateHook")), lifecycle: hook, want: updating, proceed: true,
			message: `[{"userAgent":"Lifecycle","key":"preUpdateHook"}]`},
		{name: "hook removed from the workload", pod: podIn(preparingUpdate, hookTaken), want: updating, proceed: true},
		{name: "a further revision while updating", pod: podIn(updating), lifecycle: hook, want: updating, proceed: true},
		{name: "updated without hook", pod: podIn(updated), lifecycle: &workload.Lifecycle{}, want: updating, proceed: true},
		{name: "updated takes the hook again", pod: podIn(updated), lifecycle: updateHooked(labelHook(false)), want: preparingUpdate},
		{name: "a pod on its way out is not updated", pod: podIn(preparingDelete), lifecycle: hook, want: preparingDelete},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := action.NewPodChange(tt.pod, now)
			assert.Equal(t, tt.proceed, BeginUpdate(c, tt.lifecycle))
			assert.Equal(t, tt.want, stateAfter(c))
			assert.Equal(t, tt.message, notReadyMessage(c))
		})
	}
}

func TestUpdatedTakesLabelsAndFinalizersAgainInOnePatch(t *testing.T) {
	hook := &workload.LifecycleHook{LabelsHandler: map[string]string{"hook": `"on"`}, FinalizersHandler: []string{"example.io/block"}}
	c := action.NewPodChange(podIn(updated, finalizerTaken), now)
	require.False(t, BeginUpdate(c, updateHooked(hook)))
	patches := c.Patches()
	require.Len(t, patches, 1)
	metadata := patches[0].Body["metadata"].(map[string]any)
	assert.Equal(t, `"on"`, metadata["labels"].(map[string]any)["hook"], "values are data, never JSON")
	assert.NotContains(t, metadata, "finalizers", "a finalizer that is there is not added twice")
}

func TestAbandonUpdate(t *testing.T) {
	for name, tt := range map[string]struct {
		pod       *corev1.Pod
		lifecycle *workload.Lifecycle
		want      string
	}{
		"hook still there":  {podIn(preparingUpdate, hookTaken, held("preUpdateHook")), updateHooked(labelHook(true)), normal},
		"hook released":     {podIn(preparingUpdate, held("preUpdateHook")), updateHooked(labelHook(true)), updated},
		"hook removed":      {podIn(preparingUpdate, held("preUpdateHook")), nil, normal},
		"not in that state": {podIn(updating), nil, updating},
	} {
		t.Run(name, func(t *testing.T) {
			c := action.NewPodChange(tt.pod, now)
			CancelUpdate(c, tt.lifecycle)
			assert.Equal(t, tt.want, stateAfter(c))
			assert.Equal(t, corev1.ConditionTrue, c.Condition(contract.KruisePodReady).Status, "the hook's key goes with the update")
		})
	}
}

func TestKeysGoOnEveryWayOut(t *testing.T) {
	hook := updateHooked(labelHook(true))
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"updating to updated": {podIn(updating, held("preUpdateHook")), updated},
		"updating to normal":  {podIn(updating, hookTaken, held("preUpdateHook")), normal},
		"leaked in normal":    {podIn(normal, held("preUpdateHook")), normal},
		"leaked by a regret":  {podIn(normal, held("preDeleteHook")), normal},
	} {
		t.Run(name, func(t *testing.T) {
			c := action.NewPodChange(tt.pod, now)
			Refresh(c, hook, true)
			assert.Equal(t, tt.want, stateAfter(c))
			assert.Equal(t, "[]", notReadyMessage(c))
			assert.Equal(t, corev1.ConditionTrue, c.Condition(contract.KruisePodReady).Status)
			assert.Len(t, c.Patches(), 1)
		})
	}
}

func TestDelete(t *testing.T) {
	hook := &workload.Lifecycle{PreDelete: labelHook(true)}
	t.Run("not hooked", func(t *testing.T) {
		c := action.NewPodChange(podIn(normal), now)
		assert.True(t, BeginDelete(c, hook))
		assert.True(t, BeginDelete(c, nil))
		assert.True(t, c.Empty())
	})
	for _, state := range []string{"", normal, preparingNormal, preparingUpdate, updating, updated} {
		t.Run("hooked in "+state, func(t *testing.T) {
			c := action.NewPodChange(podIn(state, hookTaken), now)
			assert.False(t, BeginDelete(c, hook))
			assert.Equal(t, preparingDelete, stateAfter(c))
			assert.Equal(t, `[{"userAgent":"Lifecycle","key":"preDeleteHook"}]`, notReadyMessage(c))
			assert.Len(t, c.Patches(), 1, "one write takes the pod out of service and marks it")
			assert.False(t, CancelDelete(c, hook), "no way back for a pod that is out of service")
		})
	}
	t.Run("released", func(t *testing.T) {
		c := action.NewPodChange(podIn(preparingDelete, held("preDeleteHook")), now)
		assert.True(t, BeginDelete(c, hook))
		assert.True(t, c.Empty())
	})
	t.Run("still hooked writes nothing", func(t *testing.T) {
		c := action.NewPodChange(podIn(preparingDelete, hookTaken, held("preDeleteHook")), now)
		assert.False(t, BeginDelete(c, hook))
		assert.True(t, c.Empty())
	})
}

func TestRegretDelete(t *testing.T) {
	for name, tt := range map[string]struct {
		state     string
		lifecycle *workload.Lifecycle
		want      bool
	}{
		"quiet hook":                {preparingDelete, &workload.Lifecycle{PreDelete: labelHook(false)}, true},
		"hook removed":              {preparingDelete, nil, true},
		"preDelete marks not ready": {preparingDelete, &workload.Lifecycle{PreDelete: labelHook(true)}, false},
		"update marks not ready":    {preparingDelete, &workload.Lifecycle{PreDelete: labelHook(false), InPlaceUpdate: labelHook(true)}, false},
		"not on its way out":        {normal, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := action.NewPodChange(podIn(tt.state, hookTaken, held("preDeleteHook")), now)
			assert.Equal(t, tt.want, CancelDelete(c, tt.lifecycle))
			if tt.want {
				assert.Equal(t, preparingNormal, stateAfter(c))
				assert.Equal(t, "[]", notReadyMessage(c))
			} else {
				assert.Equal(t, tt.state, stateAfter(c))
			}
		})
	}
}

func TestTransitionsOfOnePassCompose(t *testing.T) {
	pod := podIn(normal)
	pod.Annotations = map[string]string{contract.LifecycleTimestampAnnotation: "2025-01-01T00:00:00Z"}
	c := action.NewPodChange(pod, now)
	require.True(t, BeginUpdate(c, nil))
	require.True(t, Refresh(c, nil, true))
	assert.True(t, c.Empty(), "to Updating and back is no change, not even of the timestamp")
}

// A pod becomes Normal through its hook preNormal alone, whatever has come between.
func TestAPodThatLeavesPreparingNormalComesBackToIt(t *testing.T) {
	both := &workload.Lifecycle{PreNormal: finalizerHook(), InPlaceUpdate: labelHook(false), PreDelete: labelHook(false)}
	for name, tt := range map[string]struct {
		lifecycle *workload.Lifecycle
		pod       *corev1.Pod
		steps     []func(c *action.PodChange, l *workload.Lifecycle)
		states    []string
	}{
		"an update": {&workload.Lifecycle{PreNormal: finalizerHook()}, podIn(preparingNormal),
			[]func(c *action.PodChange, l *workload.Lifecycle){begins, completes, completes, completes},
			[]string{updating, updated, preparingNormal, preparingNormal}},
		"an update that stops nothing": {&workload.Lifecycle{PreNormal: finalizerHook(), InPlaceUpdate: &workload.LifecycleHook{}}, podIn(preparingNormal),
			[]func(c *action.PodChange, l *workload.Lifecycle){func(c *action.PodChange, l *workload.Lifecycle) { begins(c, l); completes(c, l) }, completes},
			[]string{preparingNormal, preparingNormal}},
		"an update that its hook holds, abandoned": {both, podIn(preparingNormal, hookTaken),
			[]func(c *action.PodChange, l *workload.Lifecycle){begins, CancelUpdate, completes},
			[]string{preparingUpdate, preparingNormal, preparingNormal}},
		"a deletion, regretted": {both, podIn(preparingNormal, hookTaken),
			[]func(c *action.PodChange, l *workload.Lifecycle){deletes, back, completes},
			[]string{preparingDelete, preparingNormal, preparingNormal}},
		"without that hook": {updateHooked(labelHook(false)), podIn(preparingNormal),
			[]func(c *action.PodChange, l *workload.Lifecycle){begins, completes}, []string{updating, updated}},
		"a pod that was Normal": {both, podIn(normal),
			[]func(c *action.PodChange, l *workload.Lifecycle){deletes, back}, []string{normal, normal}},
	} {
		t.Run(name, func(t *testing.T) {
			pod, states := tt.pod, []string(nil)
			for _, step := range tt.steps {
				c := action.NewPodChange(pod, now)
				step(c, tt.lifecycle)
				pod = after(c)
				states = append(states, State(pod))
			}
			assert.Equal(t, tt.states, states)
			if State(pod) == preparingNormal {
				finalizerTaken(pod)
				c := action.NewPodChange(pod, now)
				Refresh(c, tt.lifecycle, true)
				assert.Equal(t, normal, stateAfter(c))
				assert.NotContains(t, after(c).Annotations, contract.PreNormalPendingAnnotation)
			}
		})
	}
}

func begins(c *action.PodChange, l *workload.Lifecycle)    { BeginUpdate(c, l) }
func completes(c *action.PodChange, l *workload.Lifecycle) { Refresh(c, l, true) }
func deletes(c *action.PodChange, l *workload.Lifecycle)   { BeginDelete(c, l) }
func back(c *action.PodChange, _ *workload.Lifecycle)      { Set(c, normal) }

func TestWalkThroughOfTheUpdateHook(t *testing.T) {
	l := updateHooked(labelHook(false))
	pod := podIn(normal, hookTaken)
	step := func(f func(c *action.PodChange)) {
		c := action.NewPodChange(pod, now)
		f(c)
		pod = after(c)
	}
	begin := func(c *action.PodChange) { BeginUpdate(c, l) }
	refresh := func(c *action.PodChange) { Refresh(c, l, true) }
	step(begin)
	assert.Equal(t, preparingUpdate, State(pod))
	delete(pod.Labels, "hook")
	step(begin)
	assert.Equal(t, updating, State(pod))
	step(refresh)
	assert.Equal(t, updated, State(pod))
	step(refresh)
	assert.Equal(t, updated, State(pod), "waits for the user")
	step(begin)
	assert.Equal(t, preparingUpdate, State(pod), "a further template")
	assert.Equal(t, "on", pod.Labels["hook"], "the controller has put the hook back")
	step(func(c *action.PodChange) { CancelUpdate(c, l) })
	assert.Equal(t, normal, State(pod), "rolled back, the label is still there")
}
