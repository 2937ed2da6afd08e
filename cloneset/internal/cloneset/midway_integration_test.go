package cloneset_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// What OpenKruise was in the middle of when the operators changed is gone on with from there.

// midway is the pod of set web that OpenKruise had in its hands.
const midway = "web-2f49m"

// changed lets a leftover be changed as what it is.
func changed[T any](t *testing.T, kind, name string, change func(*T)) func(*unstructured.Unstructured) {
	t.Helper()
	return func(o *unstructured.Unstructured) {
		if o.GetKind() != kind || o.GetName() != name {
			return
		}
		typed, gvk := new(T), o.GroupVersionKind()
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed))
		change(typed)
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		require.NoError(t, err)
		o.Object = object
		o.SetGroupVersionKind(gvk)
	}
}

// The first of two batches of a pod is done. The second follows, the first is not repeated.
func TestTakenOverBatchesGoOn(t *testing.T) {
	namespace := env.Leftovers(t, "testdata/takeover/updating.yaml", changed(t, "Pod", midway, betweenBatches),
		changed(t, "ControllerRevision", "web-d554877cb", func(r *appsv1.ControllerRevision) {
			r.Data.Raw = bytes.ReplaceAll(r.Data.Raw, []byte("busybox:1.33"), []byte("busybox:1.32"))
		}),
		changed(t, "CloneSet", "web", func(set *v1beta1.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(0))
		}))
	c := env.Client(t)
	revisions := revisionsOf(t, namespace)
	before := testenv.Identities(env.Pods(t, namespace))
	givenNodes(t, simnodes.Options{Prefix: "sim-000"})
	startController(t, "")
	set := takenOver(t, c, namespace)

	o := &corev1.Pod{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: midway}, o))
	assert.Equal(t, map[string]string{"main": "nginx:1.15.1", "side": "busybox:1.33"}, imagesOf(o))
	restarts := map[string]int32{}
	for _, s := range o.Status.ContainerStatuses {
		restarts[s.Name] = s.RestartCount
	}
	assert.Equal(t, map[string]int32{"main": 1, "side": 1}, restarts, "side was restarted by OpenKruise")
	assert.Equal(t, contract.LifecycleNormal, o.Labels[contract.LifecycleStateLabel])
	assert.Equal(t, before, testenv.Identities(env.Pods(t, set.Namespace)))
	assert.Equal(t, revisions, revisionsOf(t, namespace))
	assert.EqualValues(t, 4, set.Status.UpdatedReplicas)
}

func imagesOf(o *corev1.Pod) map[string]string {
	found := map[string]string{}
	for _, c := range o.Spec.Containers {
		found[c.Name] = c.Image
	}
	return found
}

// betweenBatches is the pod after container side, whose priority is higher, has got its image and is ready.
func betweenBatches(o *corev1.Pod) {
	outOfService(o)
	o.Annotations[contract.LegacyInPlaceUpdateStateAnnotation] = `{"revision":"web-b4bdfd798","updateTimestamp":"2026-11-20T10:32:58Z",` +
		`"lastContainerStatuses":{"side":{"imageID":"sim://busybox:1.32"}},"updateImages":true,` +
		`"nextContainerImages":{"main":"nginx:1.15.1"},"preCheckBeforeNext":{"containersRequiredReady":["side"]},` +
		`"containerBatchesRecord":[{"timestamp":"2026-11-20T10:32:58Z","containers":["side"]}]}`
	for i, priority := range []string{"0", "10"} {
		o.Spec.Containers[i].Env = append(o.Spec.Containers[i].Env, corev1.EnvVar{
			Name: contract.ContainerBarrierEnv, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: o.Name + contract.ContainerBarrierConfigMapSuffix},
				Key:                  contract.ContainerBarrierKeyPrefix + priority,
			}},
		})
	}
	for i := range o.Status.ContainerStatuses {
		if s := &o.Status.ContainerStatuses[i]; s.Name == "side" {
			s.RestartCount = 1
		}
	}
}

// outOfService is the pod in state Updating on its way to the new revision.
func outOfService(o *corev1.Pod) {
	o.Labels[contract.RevisionLabel], o.Labels[contract.TemplateHashLabel] = "web-b4bdfd798", "b4bdfd798"
	o.Labels[contract.LifecycleStateLabel] = contract.LifecycleUpdating
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; c.Type == contract.InPlaceUpdateReady || c.Type == corev1.PodReady {
			c.Status = corev1.ConditionFalse
		}
	}
}

// A pod that its hook holds in PreparingDelete stays there, untouched, until the hook lets go of it.
func TestTakenOverPodsInPreparingDeleteAreHeld(t *testing.T) {
	const hold = "example.io/hold"
	namespace := env.Leftovers(t, "testdata/takeover/settled.yaml",
		changed(t, "CloneSet", "web", func(set *v1beta1.CloneSet) {
			set.Spec.Replicas = new(int32(3))
			set.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &workload.LifecycleHook{LabelsHandler: map[string]string{hold: "true"}}}
		}),
		changed(t, "Pod", midway, func(o *corev1.Pod) {
			o.Labels[hold] = "true"
			o.Labels[contract.LifecycleStateLabel] = contract.LifecyclePreparingDelete
		}))
	c := env.Client(t)
	pods, revisions := env.Pods(t, namespace), revisionsOf(t, namespace)
	audit := env.Audit(t)
	startController(t, "")
	set := web(namespace)
	eventually(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		assert.Equal(collect, set.Generation, set.Status.ObservedGeneration)
		assert.EqualValues(collect, 4, set.Status.Replicas)
	})
	settles(t, c, spread(namespace))
	assert.Equal(t, []string{"patch clonesets/status"}, audit.Kinds(t, userAgent, namespace))
	assert.Equal(t, pods, env.Pods(t, set.Namespace))

	held := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: midway}}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(held), held))
	change(t, c, held, func(o *corev1.Pod) { delete(o.Labels, hold) })
	takenOver(t, c, namespace)
	left := testenv.Identities(env.Pods(t, set.Namespace))
	assert.Len(t, left, len(pods)-1)
	assert.Subset(t, testenv.Identities(pods), left)
	assert.NotContains(t, left, testenv.Identities([]corev1.Pod{*held})[0])
	assert.Equal(t, revisions, revisionsOf(t, namespace))
}

// Claims of pods stay; one without an instance id belongs to no pod, and is not taken for one whose pod
// has gone, even where claims are not reused.
func TestTakenOverClaimsWithoutAnInstanceIDAreLeftAlone(t *testing.T) {
	namespace := env.Leftovers(t, "testdata/takeover/settled.yaml", changed(t, "CloneSet", "web", func(set *v1beta1.CloneSet) {
		set.Spec.ScaleStrategy.EnablePVCReuse = false
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{gen.Claim("data", "1Gi")}
	}))
	c := env.Client(t)
	set := web(namespace)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	owner := metav1.NewControllerRef(set, v1beta1.GroupVersion.WithKind(v1beta1.Kind))
	for _, o := range env.Pods(t, set.Namespace) {
		id := o.Labels[contract.InstanceIDLabel]
		if o.Labels["app"] != "web" || o.Name == midway {
			continue
		}
		claim := gen.Claim("data-web-"+id, "1Gi")
		claim.Namespace, claim.OwnerReferences = namespace, []metav1.OwnerReference{*owner}
		claim.Labels = map[string]string{"app": "web", contract.InstanceIDLabel: id}
		require.NoError(t, c.Create(t.Context(), &claim))
	}
	stray := gen.Claim("data-"+midway, "1Gi")
	stray.Namespace, stray.OwnerReferences, stray.Labels = namespace, []metav1.OwnerReference{*owner}, map[string]string{"app": "web"}
	require.NoError(t, c.Create(t.Context(), &stray))
	before := claimsIn(t, c, namespace)
	require.Len(t, before, 4)

	audit := env.Audit(t)
	startController(t, "")
	takenOver(t, c, namespace)
	assert.Equal(t, []string{"patch clonesets/status"}, audit.Kinds(t, userAgent, namespace))
	assert.Equal(t, before, claimsIn(t, c, namespace))

	givenNodes(t, simnodes.Options{Prefix: "sim-000", Bind: true})
	edit(t, c, set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(5)) })
	set = takenOver(t, c, namespace)
	after := claimsIn(t, c, namespace)
	assert.Len(t, after, 5, "the new pod has a claim of its own")
	for name, uid := range before {
		assert.Equal(t, uid, after[name], name)
	}
	assert.EqualValues(t, 5, set.Status.Replicas)
}

// claimsIn are the UIDs of the namespace's claims, by name.
func claimsIn(t *testing.T, c client.Client, namespace string) map[string]string {
	t.Helper()
	list := &corev1.PersistentVolumeClaimList{}
	require.NoError(t, c.List(t.Context(), list, client.InNamespace(namespace)))
	found := map[string]string{}
	for i := range list.Items {
		found[list.Items[i].Name] = string(list.Items[i].UID)
	}
	return found
}
