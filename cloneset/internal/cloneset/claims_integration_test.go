package cloneset_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// storedSet is a CloneSet whose pods have a claim.
func storedSet(t *testing.T, replicas int32, reuse bool) *v1beta1.CloneSet {
	t.Helper()
	set := newSet(env.Namespace(t), replicas, v1beta1.InPlaceIfPossible, 1)
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{gen.Claim("data", "1Gi")}
	set.Spec.ScaleStrategy.EnablePVCReuse = reuse
	return set
}

// claimOf is the claim of the pod, as the server has it now.
func claimOf(t require.TestingT, c client.Client, pod *corev1.Pod) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{}
	require.NoError(t, c.Get(context.Background(), types.NamespacedName{Namespace: pod.Namespace, Name: "data-" + pod.Name}, claim))
	return claim
}

// patch changes the labels of the pod on the server.
func patch(t *testing.T, c client.Client, pod *corev1.Pod, body string) {
	t.Helper()
	require.NoError(t, c.Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body))))
}

// A pod that loses its instance id keeps its claim, is given the id back, and nothing is made in its place.
func TestPodsThatLoseTheirIDsKeepTheirClaims(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := storedSet(t, 2, false)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	before := env.Pods(t, set.Namespace)
	audit := env.Audit(t)
	for range 5 {
		patch(t, c, &before[0], fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, contract.InstanceIDLabel))
		eventually(t, func(collect *assert.CollectT) {
			pod := &corev1.Pod{}
			require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(&before[0]), pod))
			assert.Equal(collect, before[0].Labels, pod.Labels)
		})
	}
	settles(t, c, set)
	for i := range before {
		assert.Nil(t, claimOf(t, c, &before[i]).DeletionTimestamp)
	}
	writes := audit.Writes(t, userAgent)
	assert.Equal(t, 5, writes["patch pods"])
	for _, none := range []string{"create pods", "delete pods", "create persistentvolumeclaims", "delete persistentvolumeclaims", "patch persistentvolumeclaims"} {
		assert.Zero(t, writes[none], none)
	}
}

// A pod that loses all its labels is not the set's any more: it runs on with its claim, and another one takes its
// place.
func TestPodsThatLoseAllLabelsKeepTheirClaims(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := storedSet(t, 2, false)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	bare := env.Pods(t, set.Namespace)[0]
	audit := env.Audit(t)
	patch(t, c, &bare, `{"metadata":{"labels":null}}`)
	eventually(t, func(collect *assert.CollectT) {
		assert.Len(collect, env.Pods(t, set.Namespace), 3)
		pod := &corev1.Pod{}
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(&bare), pod))
		assert.Empty(collect, pod.OwnerReferences)
	})
	settles(t, c, set)
	claim := claimOf(t, c, &bare)
	assert.Nil(t, claim.DeletionTimestamp)
	require.Len(t, claim.OwnerReferences, 1)
	assert.Equal(t, bare.UID, claim.OwnerReferences[0].UID)
	writes := audit.Writes(t, userAgent)
	assert.Equal(t, 1, writes["create pods"])
	assert.Zero(t, writes["delete pods"]+writes["delete persistentvolumeclaims"])
}

// A pod of somebody else that mounts a claim keeps it, however many pods of the set go, and whether they go at once
// or take their time, in which the claim would become theirs and go with them.
func TestClaimsThatStrangersMountStay(t *testing.T) {
	givenController(t)
	for name, slow := range map[string]bool{"the pod is gone": false, "the pod takes its time": true} {
		t.Run(name, func(t *testing.T) { claimOfStrangerStays(t, slow) })
	}
}

func claimOfStrangerStays(t *testing.T, slow bool) {
	t.Helper()
	c := env.Client(t)
	set := storedSet(t, 2, false)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	lost := env.Pods(t, set.Namespace)[0]
	stranger := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "backup", Namespace: set.Namespace}, Spec: set.Spec.Template.Spec}
	stranger.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + lost.Name},
	}}}
	require.NoError(t, c.Create(t.Context(), stranger))
	if slow {
		lost.Finalizers = []string{"example.com/slow"}
		require.NoError(t, c.Update(t.Context(), &lost))
	}
	require.NoError(t, c.Delete(t.Context(), &lost, client.GracePeriodSeconds(0)))
	eventually(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		assert.EqualValues(collect, 2, set.Status.AvailableReplicas)
		assert.Len(collect, env.Pods(t, set.Namespace), 3)
	})
	claim := claimOf(t, c, &lost)
	assert.Nil(t, claim.DeletionTimestamp)
	require.Len(t, claim.OwnerReferences, 1)
	assert.Equal(t, set.UID, claim.OwnerReferences[0].UID)
	if slow {
		patch(t, c, &lost, `{"metadata":{"finalizers":null}}`)
	}
}

// With claims reused, a pod that somebody deletes comes back under its name and with its claims, each time anew.
func TestReplacementsTakeTheClaimsAndTheName(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := storedSet(t, 2, true)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	first := env.Pods(t, set.Namespace)
	claim := claimOf(t, c, &first[0])
	audit := env.Audit(t)
	for range 2 {
		doomed := env.Pods(t, set.Namespace)[0]
		require.NoError(t, c.Delete(t.Context(), &doomed))
		eventually(t, func(collect *assert.CollectT) {
			pods := env.Pods(t, set.Namespace)
			require.Len(collect, pods, 2)
			assert.Equal(collect, first[0].Name, pods[0].Name)
			assert.NotEqual(collect, doomed.UID, pods[0].UID)
		})
		settles(t, c, set)
	}
	assert.Equal(t, claim.UID, claimOf(t, c, &first[0]).UID)
	writes := audit.Writes(t, userAgent)
	assert.Equal(t, 2, writes["create pods"])
	assert.Zero(t, writes["delete persistentvolumeclaims"]+writes["patch persistentvolumeclaims"])
}

// A claim that was given to a pod which does not go after all is the set's again.
func TestClaimsOfPodsThatStayComeBack(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := storedSet(t, 1, true)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	pod := env.Pods(t, set.Namespace)[0]
	claim := claimOf(t, c, &pod)
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}
	require.NoError(t, c.Update(t.Context(), claim))
	eventually(t, func(collect *assert.CollectT) {
		assert.True(collect, metav1.IsControlledBy(claimOf(collect, c, &pod), set))
	})
	assert.Len(t, claimOf(t, c, &pod).OwnerReferences, 1)
}
