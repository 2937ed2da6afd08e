package cloneset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// An operator that restarts is shown the past by an API server that lags: its first lists are of an
// earlier version, and a moment later the watches jump to the present. It plans nothing from the past:
// no pod is made or taken that the present does not ask for.
func TestThePastIsNotPlannedFrom(t *testing.T) {
	tests := []struct {
		name string
		// old says which kinds are shown as they were.
		old []string
	}{
		{name: "pods", old: []string{"/pods"}},
		{name: "sets", old: []string{"/clonesets"}},
		{name: "everything", old: []string{"/pods", "/clonesets", "/controllerrevisions", "/persistentvolumeclaims"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const wanted, maxUnavailable = 5, 1
			givenNodes(t, simnodes.Options{Bind: true})
			c := env.Client(t)
			set := newSet(env.Namespace(t), 2, v1beta1.InPlaceIfPossible, maxUnavailable)
			replicas := newReplicas(t, set.Namespace)
			stop := replicas.Start(t, hand)
			require.NoError(t, c.Create(t.Context(), set))
			settles(t, c, set)
			past := faults.Record(t, env, set.Namespace)
			edit(t, c, set, func(s *v1beta1.CloneSet) {
				image("app:2")(s)
				s.Spec.Replicas = new(int32(wanted))
			})
			settles(t, c, set)
			before := testenv.Identities(env.Pods(t, set.Namespace))
			const halfway = 2 // pods that the partition keeps as they are until the operator has stopped
			edit(t, c, set, func(s *v1beta1.CloneSet) {
				image("app:3")(s)
				s.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(halfway))
			})
			eventually(t, func(collect *assert.CollectT) {
				assert.Equal(collect, wanted-halfway, countImages(env.Pods(t, set.Namespace))["app:3"])
			})
			stop()
			edit(t, c, set, func(s *v1beta1.CloneSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = nil })

			history := faults.Record(t, env, set.Namespace)
			lag := faults.Lagging{Version: past.Version(), Old: tt.old}
			replicas.Start(t, lag.Send)
			settles(t, c, set)
			assert.EqualValues(t, len(tt.old), lag.Lists(), "lists of the past")
			history.Replay(t, func(pods []*corev1.Pod) {
				active, available := countPods(pods)
				assert.Equal(t, wanted, active)
				assert.GreaterOrEqual(t, available, wanted-maxUnavailable)
			})
			assert.Equal(t, before, testenv.Identities(env.Pods(t, set.Namespace)))
			assertWanted(t, set)
			assertCalm(t, c, set)
		})
	}
}
