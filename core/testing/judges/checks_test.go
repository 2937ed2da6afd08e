package judges_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"
)

func TestChecksSeeWhatTheyAreFor(t *testing.T) {
	tests := map[string]struct {
		check func(*judges.World)
		act   func(t *testing.T, w *judges.World)
		want  string
	}{
		"two pods of one instance": {
			check: func(w *judges.World) { w.CheckUnique(contract.InstanceIDLabel) },
			act: func(t *testing.T, w *judges.World) {
				for _, name := range []string{"a", "b"} {
					o := bare(name)
					o.Labels[contract.InstanceIDLabel] = "same"
					create(t, w, o)
				}
			},
			want: "pods b and a share",
		},
		"a pod of somebody else": {
			check: func(w *judges.World) { w.CheckOwnership("set") },
			act: func(t *testing.T, w *judges.World) {
				require.NoError(t, w.Delete(cluster.OperatorActor, mustMake(t, w, "a")))
			},
			want: "pod a of somebody else",
		},
		"a claim in use": {
			check: func(w *judges.World) { w.CheckClaims() },
			act: func(t *testing.T, w *judges.World) {
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
			check: func(w *judges.World) { w.CheckCreations(madeFor(), nil) },
			act: func(t *testing.T, w *judges.World) {
				w.Add(madeFor())
				require.NoError(t, w.Delete(cluster.OperatorActor, create(t, w, owned("a"))))
			},
			want: "pod a was made for generation 1 and is taken away for it",
		},
		"a pod made in vain that its hook holds": {
			check: func(w *judges.World) { w.CheckCreations(madeFor(), nil) },
			act: func(t *testing.T, w *judges.World) {
				w.Add(madeFor())
				made := create(t, w, owned("a"))
				_, err := w.Patch(cluster.OperatorActor, made, relabelled(bare("a"), contract.LifecycleStateLabel, contract.LifecyclePreparingDelete).Patches[0])
				require.NoError(t, err)
			},
			want: "pod a was made for generation 1",
		},
		"more pods made in vain than may surge": {
			check: func(w *judges.World) { w.CheckCreations(madeFor(), func(*cluster.View) int { return 1 }) },
			act: func(t *testing.T, w *judges.World) {
				w.Add(madeFor())
				for _, name := range []string{"a", "b"} {
					require.NoError(t, w.Delete(cluster.OperatorActor, create(t, w, owned(name))))
				}
			},
			want: "pod b was made for generation 1",
		},
		"pods that others gave a reason to go": {
			check: func(w *judges.World) { w.CheckCreations(madeFor(), nil) },
			act: func(t *testing.T, w *judges.World) {
				set := w.Add(madeFor())
				made := create(t, w, owned("a"))
				require.NoError(t, cluster.Change(w, cluster.UserActor, "", set.(*corev1.Pod), func(o *corev1.Pod) { o.Labels["a"] = "b" }))
				require.NoError(t, w.Delete(cluster.OperatorActor, made))
			},
		},
		"a pod made before another one failed": {
			check: func(w *judges.World) { w.CheckCreations(madeFor(), nil) },
			act: func(t *testing.T, w *judges.World) {
				w.Add(madeFor())
				made, other := create(t, w, owned("a")), create(t, w, owned("b"))
				require.NoError(t, cluster.Change(w, cluster.KubeletActor, "status", other.(*corev1.Pod), func(o *corev1.Pod) {
					o.Status.Phase = corev1.PodFailed
				}))
				require.NoError(t, w.Delete(cluster.OperatorActor, made))
			},
		},
		"a pod made before a node was seen that was there from the start": {
			check: func(w *judges.World) {
				w.AddNode("node-0")
				w.CheckCreations(madeFor(), nil)
			},
			act: func(t *testing.T, w *judges.World) {
				w.Add(madeFor())
				w.Sees(map[string]int{"Node": 0})
				made := create(t, w, owned("a"))
				w.Sees(nil)
				require.NoError(t, w.Delete(cluster.OperatorActor, made))
			},
		},
		"a claim in use, whose owner is gone": {
			check: func(w *judges.World) { w.CheckClaims() },
			act: func(t *testing.T, w *judges.World) {
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
			check: func(w *judges.World) { w.CheckOwnership("set"); w.CheckClaims() },
			act: func(t *testing.T, w *judges.World) {
				require.NoError(t, w.Delete(cluster.UserActor, mustMake(t, w, "a")))
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := judges.New(cluster.Options{})
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

func mustMake(t *testing.T, w *judges.World, name string) *corev1.Pod {
	t.Helper()
	pod, err := w.Create(cluster.UserActor, bare(name))
	require.NoError(t, err)
	return pod.(*corev1.Pod)
}

func TestLimitLeavesAdoptionAlone(t *testing.T) {
	w := judges.New(cluster.Options{})
	w.Limit("pods", func(v *cluster.View) int { return len(v.Active("set")) }, func(*cluster.View) int { return 0 })
	orphan := mustMake(t, w, "orphan")
	_, err := w.Patch(cluster.OperatorActor, orphan, action.Patch{Body: body{"metadata": body{"ownerReferences": []any{
		body{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "set", "controller": true},
	}}}})
	require.NoError(t, err)
	assert.Empty(t, w.Violations(), "to adopt is to follow what others did")
	owned := bare("owned")
	owned.OwnerReferences = w.Latest(orphan).GetOwnerReferences()
	create(t, w, owned)
	assert.Len(t, w.Violations(), 1, "to create is not")
}
