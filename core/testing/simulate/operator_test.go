package simulate_test

import (
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

// An operator does not delete a claim that a pod mounts, whatever its plan says, nor does it stop over it.
func TestOperatorsLeaveClaimsInUse(t *testing.T) {
	w := simulate.New(cluster.Options{})
	user := bare("a")
	user.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	create(t, w, user)
	claim := create(t, w, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: namespace}})
	other := create(t, w, bare("b"))
	out := simulate.NewOperator(w, &miniSet{}, simulate.Faults{}).Run([]action.Step{
		{Name: "first", Actions: []action.Action{{Verb: action.Delete, Object: claim, Guard: action.Unmounted}}},
		{Name: "second", Actions: []action.Action{{Verb: action.Delete, Object: other, Dependents: []action.Object{claim}}}},
	})
	assert.Equal(t, operator.Outcome{Done: 1}, out)
	assert.Nil(t, w.Latest(claim).GetDeletionTimestamp())
}

func TestLimitExcusesWhatTheOperatorCannotKnow(t *testing.T) {
	for name, lag := range map[string]int{"fresh view": 0, "stale view": 10} {
		t.Run(name, func(t *testing.T) {
			excused := 0
			for seed := range uint64(30) {
				w := newWorld(cluster.Options{Seed: seed}, 3)
				simulate.Settle(t, w, &miniSet{}, 500)
				// A kubelet fails a pod; an operator that has not seen it updates another one.
				wants(w, "app:v2")
				w.FailNode("node-0")
				w.After(time.Minute, func() { w.RecoverNode("node-0") })
				simulate.SettleUnder(t, w, &miniSet{}, simulate.Faults{Seed: seed, Lag: lag}, 1000)
				if len(w.Violations()) == 0 {
					excused++
				}
			}
			assert.Equal(t, 30, excused)
		})
	}
}

func TestStatusStepWritesDifferencesOnly(t *testing.T) {
	set := newSet(1, "app:v1")
	set.Status = appsv1.ReplicaSetStatus{Replicas: 1, ReadyReplicas: 1}
	w := simulate.New(cluster.Options{}, set)
	present := w.Latest(set).(*appsv1.ReplicaSet)
	assert.Empty(t, operator.StatusStep(present, present.Status).Actions)

	step := operator.StatusStep(present, appsv1.ReplicaSetStatus{Replicas: 2})
	require.Len(t, step.Actions, 1)
	_, err := w.Patch(cluster.OperatorActor, present, step.Actions[0].Patches[0])
	require.NoError(t, err)
	after := w.Latest(set).(*appsv1.ReplicaSet)
	assert.Equal(t, appsv1.ReplicaSetStatus{Replicas: 2}, after.Status)
	assert.Equal(t, present.Generation, after.Generation)
}
