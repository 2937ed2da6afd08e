package execute_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/core/controllers/execute"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/newpod"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

func (w *world) claim(t testing.TB, name string) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim := gen.Claim(name, "1Gi")
	claim.Namespace, claim.UID = w.ns, ""
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	require.NoError(t, w.Create(t.Context(), &claim))
	return &claim
}

// mounting creates a pod that nobody controls and that mounts the claim.
func (w *world) mounting(t testing.TB, name, claim string) *corev1.Pod {
	t.Helper()
	pod := w.pod(name)
	pod.OwnerReferences = nil
	newpod.MountClaims(pod, newpod.Mount{Volume: "data", Claim: claim})
	require.NoError(t, w.Create(t.Context(), pod))
	return pod
}

// No claim is deleted that a pod mounts, whoever's the pod is and whatever the caller knows of it. Others are.
func TestClaimsThatPodsMountAreNotDeleted(t *testing.T) {
	w := newWorld(t)
	used, free := w.claim(t, "used"), w.claim(t, "free")
	w.mounting(t, "stranger", "used")
	after := w.existing(t, "after")
	audit := env.Audit(t)
	out := w.Run(t.Context(), w.owner, []action.Step{
		step(action.Action{Verb: action.Delete, Object: used, Guard: action.Unmounted}, action.Action{Verb: action.Delete, Object: free, Guard: action.Unmounted}),
		step(action.Action{Verb: action.Delete, Object: after}),
	})
	require.NoError(t, out.Err)
	require.Len(t, out.Blocked, 1)
	assert.Equal(t, "delete persistentvolumeclaim used: it is mounted by pod stranger", out.Blocked[0].Message)
	assert.False(t, out.Incomplete, "it holds up nothing else")
	assert.Equal(t, 2, out.Done(action.Delete))
	require.NoError(t, w.get(t, used))
	assert.Nil(t, used.DeletionTimestamp)
	assert.Equal(t, 1, w.listsOfPods(t, audit), "the server is asked once in a pass")
}

// listsOfPods counts how often the pods of the world were listed.
func (w *world) listsOfPods(t testing.TB, audit *testenv.Audit) int {
	t.Helper()
	lists := 0
	for _, r := range audit.Requests(t, "") {
		if r.Verb == "list" && r.Object.Resource == "pods" && r.Object.Namespace == w.ns {
			lists++
		}
	}
	return lists
}

// Passes that go on with each other list the pods once, unless they last long. A pass that begins anew lists them anew.
func TestPassesThatGoOnListThePodsThatMountClaimsOnce(t *testing.T) {
	for name, test := range map[string]struct {
		stopwatch clock.PassiveClock
		lists     int
	}{
		"short passes": {clock.RealClock{}, 2},
		"long passes":  {&hours{}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			hurried, err := execute.New(execute.Options{
				Client: w.Client, Live: w.Client, Recorder: w.writes, Metrics: w.metric, Controller: "test", Refusals: w.memory,
				Pass: time.Nanosecond, Stopwatch: test.stopwatch,
			})
			require.NoError(t, err)
			audit := env.Audit(t)
			var all []action.Action
			for _, name := range []string{"a", "b", "c"} {
				all = append(all, action.Action{Verb: action.Delete, Object: w.claim(t, name), Guard: action.Unmounted})
			}
			for i := range all {
				out := hurried.Run(t.Context(), w.owner, []action.Step{step(all[i:]...)})
				require.Equal(t, 1, out.Done(action.Delete))
			}
			anew := action.Action{Verb: action.Delete, Object: w.claim(t, "d"), Guard: action.Unmounted}
			out := hurried.Run(t.Context(), w.owner, []action.Step{step(anew)})
			require.Equal(t, 1, out.Done(action.Delete))
			assert.Equal(t, test.lists, w.listsOfPods(t, audit))
		})
	}
}

// A claim is deleted with its pod, unless another pod mounts it.
func TestReleasedClaimsGoWithTheirPod(t *testing.T) {
	w := newWorld(t)
	own, shared := w.claim(t, "own"), w.claim(t, "shared")
	deleted := w.mounting(t, "deleted", "own")
	w.mounting(t, "stranger", "shared")
	release := func(claim *corev1.PersistentVolumeClaim) action.Action {
		body := map[string]any{"metadata": map[string]any{"labels": map[string]any{"goes": "with-its-pod"}}}
		return action.Action{Verb: action.Release, Object: claim, Guard: action.Unmounted, ForPod: deleted.UID, Patches: []action.Patch{{Body: body}}}
	}
	out := w.Run(t.Context(), w.owner, []action.Step{step(release(own), release(shared)), step(action.Action{Verb: action.Delete, Object: deleted})})
	require.NoError(t, out.Err)
	require.Len(t, out.Blocked, 1)
	assert.Equal(t, "release persistentvolumeclaim shared: it is mounted by pod stranger", out.Blocked[0].Message)
	assert.Equal(t, 1, out.Done(action.Release))
	assert.Equal(t, 1, out.Done(action.Delete), "it holds up nothing else")
	require.NoError(t, w.get(t, own))
	assert.Equal(t, "with-its-pod", own.Labels["goes"])
	require.NoError(t, w.get(t, shared))
	assert.Empty(t, shared.Labels)
}

// The claims of a pod that is deleted go after it, but for those that another pod mounts.
func TestClaimsGoWithTheirPod(t *testing.T) {
	w := newWorld(t)
	own, shared := w.claim(t, "own"), w.claim(t, "shared")
	pods := []*corev1.Pod{w.mounting(t, "first", "own"), w.mounting(t, "second", "shared"), w.mounting(t, "other", "shared")}
	out := w.Run(t.Context(), w.owner, []action.Step{step(
		action.Action{Verb: action.Delete, Object: pods[0], Dependents: []action.Object{own}},
		action.Action{Verb: action.Delete, Object: pods[1], Dependents: []action.Object{shared}},
	)})
	require.NoError(t, out.Err)
	assert.Equal(t, 2, out.Done(action.Delete))
	require.NoError(t, w.get(t, shared))
	assert.Nil(t, shared.DeletionTimestamp)
	gone := &metav1.PartialObjectMetadata{}
	gone.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
	err := w.Client.Get(t.Context(), types.NamespacedName{Namespace: w.ns, Name: own.Name}, gone)
	assert.True(t, err != nil || gone.DeletionTimestamp != nil, "the claim goes with its pod")
}
