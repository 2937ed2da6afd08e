package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
)

type body = map[string]any

func bare(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:v1"}}},
	}
}

func create(t *testing.T, w *nodes.World, o action.Object) action.Object {
	t.Helper()
	made, err := w.Create(cluster.OperatorActor, o)
	require.NoError(t, err)
	return made
}

func TestPatchesFollowTheRulesOfTheSubresource(t *testing.T) {
	labels := body{"labels": body{"a": "b"}}
	image := body{"containers": []any{body{"name": "main", "image": "app:v2"}}}
	cpu := body{"containers": []any{body{"name": "main", "resources": body{"limits": body{"cpu": "2"}}}}}
	disk := body{"containers": []any{body{"name": "main", "resources": body{"limits": body{"ephemeral-storage": "2Gi"}}}}}
	condition := body{"conditions": []any{body{"type": "X", "status": "True"}}}
	tests := map[string]struct {
		patch      action.Patch
		refused    func(error) bool // nil: accepted
		generation int64
	}{
		"labels":                      {patch: action.Patch{Body: body{"metadata": labels}}, generation: 1},
		"image":                       {patch: action.Patch{Body: body{"spec": image}}, generation: 2},
		"image and labels":            {patch: action.Patch{Body: body{"spec": image, "metadata": labels}}, generation: 2},
		"image by status":             {patch: action.Patch{Subresource: "status", Body: body{"spec": image}}, refused: apierrors.IsInvalid},
		"another container":           {patch: action.Patch{Body: body{"spec": body{"containers": []any{body{"name": "x", "image": "y"}}}}}, refused: apierrors.IsInvalid},
		"node name":                   {patch: action.Patch{Body: body{"spec": body{"nodeName": "node-9"}}}, refused: apierrors.IsInvalid},
		"condition":                   {patch: action.Patch{Subresource: "status", Body: body{"status": condition}}, generation: 1},
		"condition and labels":        {patch: action.Patch{Subresource: "status", Body: body{"status": condition, "metadata": labels}}, generation: 1},
		"condition by spec":           {patch: action.Patch{Body: body{"status": condition}}, refused: apierrors.IsInvalid},
		"finalizer by status":         {patch: action.Patch{Subresource: "status", Body: body{"metadata": body{"finalizers": []any{"x.com/y"}}}}, refused: apierrors.IsInvalid},
		"cpu by resize":               {patch: action.Patch{Subresource: "resize", Body: body{"spec": cpu}}, generation: 2},
		"cpu by spec":                 {patch: action.Patch{Body: body{"spec": cpu}}, refused: apierrors.IsInvalid},
		"disk by resize":              {patch: action.Patch{Subresource: "resize", Body: body{"spec": disk}}, refused: apierrors.IsInvalid},
		"labels by resize":            {patch: action.Patch{Subresource: "resize", Body: body{"metadata": labels}}, refused: apierrors.IsInvalid},
		"apply patch":                 {patch: action.Patch{Type: types.ApplyPatchType, Body: body{}}, refused: apierrors.IsUnsupportedMediaType},
		"merge patch replaces a list": {patch: action.Patch{Type: types.MergePatchType, Body: body{"metadata": body{"finalizers": []any{"x.com/y"}}}}, generation: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := nodes.New(cluster.Options{})
			o := bare("web-1")
			o.Spec.Containers[0].Resources.Requests = oneCPU()
			pod := create(t, w, o)
			n, err := w.Patch(cluster.OperatorActor, pod, tt.patch)
			if tt.refused != nil {
				require.Error(t, err)
				assert.True(t, tt.refused(err), "%v", err)
				assert.Equal(t, pod, w.Latest(pod), "a refused write leaves no trace")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.generation, n.GetGeneration())
			assert.NotEqual(t, pod.GetResourceVersion(), n.GetResourceVersion())
			assert.Equal(t, "1", pod.GetResourceVersion(), "the old object stays as it was")
		})
	}
}

func TestPatchMergesInTheWayOfTheServer(t *testing.T) {
	w := nodes.New(cluster.Options{})
	o := bare("web-1")
	o.Finalizers = []string{"a.com/a"}
	o.Annotations = map[string]string{"old": "x"}
	o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "u"}}
	pod := create(t, w, o)
	n, err := w.Patch(cluster.OperatorActor, pod, action.Patch{Body: body{"metadata": body{
		"finalizers":      []any{"b.com/b"},
		"annotations":     body{"old": nil, "new": "y"},
		"ownerReferences": []any{body{"$patch": "delete", "uid": "u"}},
	}}})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"a.com/a", "b.com/b"}, n.GetFinalizers())
	assert.Equal(t, map[string]string{"new": "y"}, n.GetAnnotations())
	assert.Empty(t, n.GetOwnerReferences())
	assert.Equal(t, map[string]string{"app": "web"}, n.GetLabels())
	assert.Len(t, n.(*corev1.Pod).Spec.Containers, 1)
}

func TestMisspeltPatchesAreRefused(t *testing.T) {
	w := nodes.New(cluster.Options{})
	pod := create(t, w, bare("web-1"))
	for _, b := range []body{
		{"metadata": body{"label": body{"a": "b"}}},
		{"spce": body{}},
		{"spec": body{"containers": []any{body{"name": "main", "imagee": "x"}}}},
	} {
		_, err := w.Patch(cluster.OperatorActor, pod, action.Patch{Body: b})
		assert.True(t, apierrors.IsBadRequest(err), "%v: %v", b, err)
	}
}

func TestPreconditionsAreKept(t *testing.T) {
	w := nodes.New(cluster.Options{})
	pod := create(t, w, bare("web-1"))
	relabel := action.Patch{Body: body{"metadata": body{"labels": body{"a": "b"}}}}
	n, err := w.Patch(cluster.OperatorActor, pod, relabel)
	require.NoError(t, err)

	_, err = w.Patch(cluster.OperatorActor, pod, relabel)
	assert.True(t, apierrors.IsConflict(err), "the version is old: %v", err)
	assert.True(t, apierrors.IsConflict(w.Delete(cluster.OperatorActor, pod)), "the version is old")
	other := bare("web-1")
	other.UID = "other"
	assert.True(t, apierrors.IsConflict(w.Delete(cluster.OperatorActor, other)), "the UID is another")
	_, err = w.Create(cluster.OperatorActor, bare("web-1"))
	assert.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	assert.True(t, apierrors.IsNotFound(w.Delete(cluster.OperatorActor, bare("web-2"))))

	same, err := w.Patch(cluster.OperatorActor, n, relabel)
	require.NoError(t, err)
	assert.Equal(t, n.GetResourceVersion(), same.GetResourceVersion(), "a write that changes nothing makes no version")
	assert.Equal(t, 1, w.NoOps(cluster.OperatorActor))
}

func TestAnyVersionStillMeansTheSameObject(t *testing.T) {
	w := nodes.New(cluster.Options{})
	pod := create(t, w, bare("web-1"))
	require.NoError(t, cluster.Change(w, cluster.UserActor, "", bare("web-1"), func(p *corev1.Pod) { p.Labels["x"] = "y" }))
	relabel := action.Patch{AnyVersion: true, Body: body{"metadata": body{"labels": body{"a": "b"}}}}
	n, err := w.Patch(cluster.OperatorActor, pod, relabel)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"app": "web", "x": "y", "a": "b"}, n.GetLabels())

	require.NoError(t, w.Delete(cluster.UserActor, n))
	create(t, w, bare("web-1"))
	_, err = w.Patch(cluster.OperatorActor, pod, relabel)
	assert.True(t, apierrors.IsConflict(err), "%v", err)
}

func TestDeletionTakesItsCourse(t *testing.T) {
	w := nodes.New(cluster.Options{Calm: true})
	pod := create(t, w, bare("web-1"))
	require.NoError(t, w.Delete(cluster.UserActor, pod))
	assert.Nil(t, w.Latest(pod), "a pod without a node goes at once")

	o := bare("web-2")
	o.Finalizers = []string{"x.com/y"}
	pod = create(t, w, o)
	w.Advance(10 * time.Second)
	require.NoError(t, w.Delete(cluster.UserActor, bare("web-2")))
	w.Advance(time.Minute)
	pod = w.Latest(pod)
	require.NotNil(t, pod, "the finalizer holds it")
	require.NotNil(t, pod.GetDeletionTimestamp())
	err := cluster.Change(w, cluster.UserActor, "", pod.(*corev1.Pod), func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "z.com/z") })
	assert.True(t, apierrors.IsInvalid(err), "no new finalizers while it goes: %v", err)
	require.NoError(t, cluster.Change(w, cluster.UserActor, "", pod.(*corev1.Pod), func(p *corev1.Pod) { p.Finalizers = nil }))
	assert.Nil(t, w.Latest(pod))
}

func TestClaimStaysWhileAPodUsesIt(t *testing.T) {
	w := nodes.New(cluster.Options{Calm: true})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: namespace}}
	o := bare("web-1")
	o.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	create(t, w, o)
	w.Advance(10 * time.Second)
	assert.Empty(t, w.Pods()[0].Spec.NodeName, "a pod waits for its claim")
	create(t, w, claim)
	w.Advance(10 * time.Second)
	assert.NotEmpty(t, w.Pods()[0].Spec.NodeName)
	assert.Equal(t, corev1.ClaimBound, w.Latest(claim).(*corev1.PersistentVolumeClaim).Status.Phase)

	require.NoError(t, w.Delete(cluster.UserActor, claim))
	w.Advance(time.Minute)
	require.NotNil(t, w.Latest(claim))
	require.NoError(t, w.Delete(cluster.UserActor, bare("web-1")))
	w.Advance(time.Minute)
	assert.Nil(t, w.Latest(claim))
}

func TestOwnerlessObjectsAreCollected(t *testing.T) {
	w := nodes.New(cluster.Options{Calm: true}, newSet(1, "app:v1"))
	ref := func(name string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: uid}
	}
	one, both, never := bare("one"), bare("both"), bare("never")
	one.OwnerReferences = []metav1.OwnerReference{ref(setName, "dead")}
	both.OwnerReferences = []metav1.OwnerReference{ref(setName, "set"), ref("gone", "dead")}
	for _, o := range []*corev1.Pod{one, both, never} {
		create(t, w, o)
	}
	w.Advance(time.Minute)
	assert.Nil(t, w.Latest(one))
	assert.NotNil(t, w.Latest(never))
	require.NotNil(t, w.Latest(both))
	assert.Equal(t, []metav1.OwnerReference{ref(setName, "set")}, w.Latest(both).GetOwnerReferences())
}

func TestRevisionsKeepTheirData(t *testing.T) {
	w := nodes.New(cluster.Options{})
	r := create(t, w, &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: namespace}, Revision: 1,
		Data: runtime.RawExtension{Raw: []byte(`{"spec":{"z":1,"a":2}}`)},
	})
	n, err := w.Patch(cluster.OperatorActor, r, action.Patch{Body: body{"revision": 5}})
	require.NoError(t, err)
	assert.EqualValues(t, 5, n.(*appsv1.ControllerRevision).Revision)
	assert.JSONEq(t, `{"spec":{"z":1,"a":2}}`, string(n.(*appsv1.ControllerRevision).Data.Raw))
	_, err = w.Patch(cluster.OperatorActor, n, action.Patch{Body: body{"data": body{"spec": nil}}})
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
}

func TestViewsShowThePast(t *testing.T) {
	w := nodes.New(cluster.Options{})
	first := create(t, w, bare("first"))
	second := create(t, w, bare("second"))
	_, err := w.Patch(cluster.OperatorActor, first, action.Patch{Body: body{"metadata": body{"labels": body{"app": "x"}}}})
	require.NoError(t, err)
	require.NoError(t, w.Delete(cluster.OperatorActor, second))
	create(t, w, bare("third"))

	show := func(lag int) map[string]string {
		shown := map[string]string{}
		for _, pod := range cluster.List[*corev1.Pod](w.View(func(string) int { return lag })) {
			shown[pod.Name] = pod.Labels["app"]
		}
		return shown
	}
	assert.Equal(t, map[string]string{"first": "x", "third": "web"}, show(0))
	assert.Equal(t, map[string]string{"first": "x"}, show(1))
	assert.Equal(t, map[string]string{"first": "x", "second": "web"}, show(2), "its time to end is over")
	assert.Equal(t, map[string]string{"first": "x", "second": "web"}, show(3))
	assert.Equal(t, map[string]string{"first": "web", "second": "web"}, show(4))
	assert.Equal(t, map[string]string{"first": "web"}, show(5))
	assert.Empty(t, show(9))
}
