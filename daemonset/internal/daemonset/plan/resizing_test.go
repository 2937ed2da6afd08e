package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// A pod that is resized is available all the while. The set told that its node had had no available pod for as long as the
// pod is old, and not what the kubelet says.
func TestTheStatusTellsOfTheResizeThatOthersWaitFor(t *testing.T) {
	notPending := gen.Change(func(o *corev1.Pod) {
		o.Status.Conditions = slices.DeleteFunc(o.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodResizePending })
	})
	for name, c := range map[string]struct {
		options []gen.PodOption
		reason  string
	}{
		"under way":           {[]gen.PodOption{awaiting(time.Second), notPending}, completion.ReasonResize},
		"deferred":            {[]gen.PodOption{awaiting(10 * time.Second)}, completion.ReasonResize + corev1.PodReasonDeferred},
		"deferred for longer": {[]gen.PodOption{awaiting(10 * time.Minute)}, completion.ReasonResize + corev1.PodReasonDeferred},
	} {
		t.Run(name, func(t *testing.T) {
			w := given(t, 3, asks("2"), inPlace).old("n1 n2").updated("n3", c.options...)
			w.featureGates.Resize = true
			list := w.status().Conditions
			ready, progressing := conditions.Get(list, conditions.Ready), conditions.Get(list, v1beta1.DaemonSetProgressing)
			assert.Equal(t, c.reason, ready.Reason)
			assert.Contains(t, ready.Message, "web-n3-2: container main")
			assert.Equal(t, v1beta1.ReasonRollingOut, progressing.Reason)
			assert.Empty(t, w.plan().Notices)
			waits := w.plan().Waits
			last := waits[len(waits)-1]
			assert.Equal(t, WaitMaxUnavailable, last.Reason)
			assert.Equal(t, "node n2 waits for its update (maxUnavailable 1); being updated: n3", last.Message)
		})
	}
}

// Nodes that are down for long and use up what may be unavailable block the update, whatever else is updated.
func TestNodesThatAreDownBlockBesideOneThatIsResized(t *testing.T) {
	w := given(t, 4, asks("2"), inPlace, maxUnavailable("2")).old("n1").
		updated("n2 n3", gen.NotReady(now.Add(-10*time.Minute))).updated("n4", awaiting(time.Minute))
	w.featureGates.Resize = true
	blocked := conditions.Get(w.status().Conditions, v1beta1.DaemonSetProgressing)
	assert.Equal(t, v1beta1.ReasonBlockedByUnavailableNodes, blocked.Reason)
	assert.Contains(t, blocked.Message, "not available yet: n2, n3; being updated: n4")
}
