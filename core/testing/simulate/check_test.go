package simulate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"
)

func TestChecksSeeWhatTheyAreFor(t *testing.T) {
	tests := map[string]struct {
		check func(*simulate.World)
		act   func(t *testing.T, w *simulate.World)
		want  string
	}{
		"two pods of one instance": {
			check: func(w *simulate.World) { w.CheckUnique(contract.InstanceIDLabel) },
			act: func(t *testing.T, w *simulate.World) {
				for _, name := range []string{"a", "b"} {
					o := bare(name)
					o.Labels[contract.InstanceIDLabel] = "same"
					create(t, w, o)
				}
			},
			want: "pods b and a share",
		},
		"a pod of somebody else": {
			check: func(w *simulate.World) { w.CheckOwnership("set") },
			act: func(t *testing.T, w *simulate.World) {
				require.NoError(t, w.Delete(cluster.OperatorActor, mustMake(t, w, "a")))
			},
			want: "pod a of somebody else",
		},
		"a claim in use": {
			check: func(w *simulate.World) { w.CheckClaims() },
			act: func(t *testing.T, w *simulate.World) {
				o := bare("a")
				o.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
				}}}
				create(t, w, o)
				claim := create(t, w, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: namespace}})
				require.NoError(t, w.Delete(cluster.OperatorActor, claim))
			},
			want: "claim data is deleted and pod a uses it",
		},
		"a pod made in vain": {
			check: func(w *simulate.World) { w.CheckCreations(madeFor(), nil) },
			act: func(t *testing.T, w *simulate.World) {
				w.Add(madeFor())
				require.NoError(t, w.Delete(cluster.OperatorActor, create(t, w, owned("a"))))
			},
			want: "pod a was made for generation 1 and is taken away for it",
		},
		"a pod made in vain that its hook holds": {
			check: func(w *simulate.World) { w.CheckCreations(madeFor(), nil) },
			act: func(t *testing.T, w *simulate.World) {
				w.Add(madeFor())
				made := create(t, w, owned("a"))
				_, err := w.Patch(cluster.OperatorActor, made, relabelled(bare("a"), contract.LifecycleStateLabel, contract.LifecyclePreparingDelete).Patches[0])
				require.NoError(t, err)
			},
			want: "pod a was made for generation 1",
		},
		"more pods made in vain than may surge": {
			check: func(w *simulate.World) { w.CheckCreations(madeFor(), func(*cluster.View) int { return 1 }) },
			act: func(t *testing.T, w *simulate.World) {
				w.Add(madeFor())
				for _, name := range []string{"a", "b"} {
					require.NoError(t, w.Delete(cluster.OperatorActor, create(t, w, owned(name))))
				}
			},
			want: "pod b was made for generation 1",
		},
		"pods that others gave a reason to go": {
			check: func(w *simulate.World) { w.CheckCreations(madeFor(), nil) },
			act: func(t *testing.T, w *simulate.World) {
				set := w.Add(madeFor())
				made := create(t, w, owned("a"))
				require.NoError(t, cluster.Change(w, cluster.UserActor, "", set.(*corev1.Pod), func(o *corev1.Pod) { o.Labels["a"] = "b" }))
				require.NoError(t, w.Delete(cluster.OperatorActor, made))
			},
		},
		"a pod made before another one failed": {
			check: func(w *simulate.World) { w.CheckCreations(madeFor(), nil) },
			act: func(t *testing.T, w *simulate.World) {
				w.Add(madeFor())
				made, other := create(t, w, owned("a")), create(t, w, owned("b"))
				require.NoError(t, cluster.Change(w, cluster.KubeletActor, "status", other.(*corev1.Pod), func(o *corev1.Pod) {
					o.Status.Phase = corev1.PodFailed
				}))
				require.NoError(t, w.Delete(cluster.OperatorActor, made))
			},
		},
		"a claim in use, whose owner is gone": {
			check: func(w *simulate.World) { w.CheckClaims() },
			act: func(t *testing.T, w *simulate.World) {
				owner, user := mustMake(t, w, "owner"), bare("a")
				user.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
				}}}
				create(t, w, user)
				create(t, w, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
					Name: "data", Namespace: namespace, OwnerReferences: []metav1.OwnerReference{ownership.PodReference(owner)},
				}})
				require.NoError(t, w.Delete(cluster.UserActor, owner))
				w.Advance(time.Hour)
			},
			want: "claim data is deleted and pod a uses it",
		},
		"what users do is their own affair": {
			check: func(w *simulate.World) { w.CheckOwnership("set"); w.CheckClaims() },
			act: func(t *testing.T, w *simulate.World) {
				require.NoError(t, w.Delete(cluster.UserActor, mustMake(t, w, "a")))
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := simulate.New(cluster.Options{})
			tt.check(w)
			tt.act(t, w)
			if tt.want == "" {
				assert.Empty(t, w.Violations())
				return
			}
			require.Len(t, w.Violations(), 1)
			assert.Contains(t, w.Violations()[0], tt.want)
		})
	}
}

// madeFor returns what owns pods, and owned is one of them.
func madeFor() *corev1.Pod {
	o := bare("set")
	o.UID = "set"
	return o
}

func owned(name string) *corev1.Pod {
	o := bare(name)
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "set", UID: "set", Controller: new(true)}}
	return o
}

func mustMake(t *testing.T, w *simulate.World, name string) *corev1.Pod {
	t.Helper()
	pod, err := w.Create(cluster.UserActor, bare(name))
	require.NoError(t, err)
	return pod.(*corev1.Pod)
}

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

func TestLimitLeavesAdoptionAlone(t *testing.T) {
	w := simulate.New(cluster.Options{}, newSet(0, "app:v1"))
	w.Limit("pods", func(v *cluster.View) int { return len(v.Active("set")) }, wantedReplicas)
	orphan := mustMake(t, w, "orphan")
	_, err := w.Patch(cluster.OperatorActor, orphan, action.Patch{Body: body{"metadata": body{"ownerReferences": []any{
		body{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": setName, "uid": "set", "controller": true},
	}}}})
	require.NoError(t, err)
	assert.Empty(t, w.Violations(), "to adopt is to follow what others did")
	owned := bare("owned")
	owned.OwnerReferences = w.Latest(orphan).GetOwnerReferences()
	create(t, w, owned)
	assert.Len(t, w.Violations(), 1, "to create is not")
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
