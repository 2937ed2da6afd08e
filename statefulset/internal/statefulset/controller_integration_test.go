package statefulset_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"
	"github.com/flotilla-project/flotilla/core/testing/testenv/workloads"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// The budget of writes: two a pod to scale out, three to update in place, none when nothing is to be
// done.
func TestWritesPerPod(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 10, v1beta1.InPlaceIfPossible, 3)
	audit := env.Audit(t)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	writes := audit.Writes(t, userAgent)
	assert.Equal(t, 10, writes["create pods"])
	assert.Equal(t, 10, writes["patch pods/status"])
	assert.Zero(t, writes["patch pods"])
	assert.Equal(t, 1, writes["create controllerrevisions"])

	before := testenv.Identities(env.Pods(t, set.Namespace))
	audit = env.Audit(t)
	testenv.Edit(t, c, set, image("app:2"))
	settles(t, c, set)
	await.Until(t, func(collect *assert.CollectT) {
		assert.Equal(collect, 20, audit.Writes(t, userAgent)["patch pods/status"])
	})
	writes = audit.Writes(t, userAgent)
	assert.Equal(t, 10, writes["patch pods"])
	assert.Zero(t, writes["create pods"]+writes["delete pods"])
	pods := env.Pods(t, set.Namespace)
	assert.Equal(t, before, testenv.Identities(pods))
	for i := range pods {
		assert.Equal(t, "app:2", pods[i].Spec.Containers[0].Image)
		assert.EqualValues(t, 1, pods[i].Status.ContainerStatuses[0].RestartCount)
	}

	audit = env.Audit(t)
	testenv.Edit(t, c, set, replicas(4))
	settles(t, c, set)
	writes = audit.Writes(t, userAgent)
	assert.Equal(t, 6, writes["delete pods"])
	assert.Zero(t, writes["patch pods/status"]+writes["patch pods"])
}

// What is handed to a pod of that name again after a rollback is its first revision, in order and one
// by one.
func TestRecreationAndRollback(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 3, v1beta1.ReCreate, 1)
	set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	before, first := env.Pods(t, set.Namespace), set.Status.UpdateRevision
	testenv.Edit(t, c, set, image("app:2"))
	settles(t, c, set)
	after := env.Pods(t, set.Namespace)
	assert.Equal(t, names(before), names(after))
	for i := range after {
		assert.NotEqual(t, before[i].UID, after[i].UID)
	}
	assert.NotEqual(t, first, set.Status.UpdateRevision)
	testenv.Edit(t, c, set, image("app:1"))
	settles(t, c, set)
	assert.Equal(t, first, set.Status.UpdateRevision)
	assert.Equal(t, first, set.Status.CurrentRevision)
	list := &appsv1.ControllerRevisionList{}
	require.NoError(t, c.List(t.Context(), list, client.InNamespace(set.Namespace)))
	assert.Len(t, list.Items, 2)
}

// Defaults that somebody writes into the stored template are no change.
func TestDefaultsStartNoRollout(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 1, v1beta1.ReCreate, 1)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	before, revision := testenv.Identities(env.Pods(t, set.Namespace)), set.Status.UpdateRevision
	testenv.Edit(t, c, set, func(s *v1beta1.StatefulSet) {
		s.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
		s.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
		s.Spec.Template.Spec.Containers[0].TerminationMessagePath = "/dev/termination-log"
	})
	settles(t, c, set)
	assert.Equal(t, revision, set.Status.UpdateRevision)
	assert.Equal(t, before, testenv.Identities(env.Pods(t, set.Namespace)))
}

func TestReservedOrdinals(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 4, v1beta1.ReCreate, 1)
	set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(1)}
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	assert.Equal(t, []string{"web-0", "web-2", "web-3", "web-4"}, names(env.Pods(t, set.Namespace)))
	testenv.Edit(t, c, set, func(s *v1beta1.StatefulSet) {
		s.Spec.ReserveOrdinals = append(s.Spec.ReserveOrdinals, intstr.FromInt32(3))
	})
	settles(t, c, set)
	assert.Equal(t, []string{"web-0", "web-2", "web-4", "web-5"}, names(env.Pods(t, set.Namespace)))
}

// Orphans are taken by name: one that only has the labels is left alone. A member that is set loose later, or
// loses the label by which the cache selects pods, comes back as soon as that is seen.
func TestOrphansAreAdoptedByName(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	namespace := env.Namespace(t)
	template := gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1"))
	for _, name := range []string{"web-1", "stray"} {
		require.NoError(t, c.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: template.Labels}, Spec: template.Spec,
		}))
	}
	adopted := env.Pods(t, namespace)[1].UID
	set := newSet(namespace, 2, v1beta1.ReCreate, 1)
	set.Spec.UpdateStrategy = v1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	require.NoError(t, c.Create(t.Context(), set))
	owned := func(collect *assert.CollectT) {
		pods := env.Pods(t, namespace)
		if assert.Equal(collect, []string{"stray", "web-0", "web-1"}, names(pods)) {
			assert.Empty(collect, pods[0].OwnerReferences)
			assert.True(collect, metav1.IsControlledBy(&pods[1], set))
			assert.True(collect, metav1.IsControlledBy(&pods[2], set))
			assert.Equal(collect, adopted, pods[2].UID)
			assert.Equal(collect, "web-1", pods[2].Labels[appsv1.StatefulSetPodNameLabel])
		}
	}
	await.Until(t, owned)
	testenv.Edit(t, c, &env.Pods(t, namespace)[2], func(o *corev1.Pod) { o.OwnerReferences = nil })
	await.Until(t, owned)
	testenv.Edit(t, c, &env.Pods(t, namespace)[2], func(o *corev1.Pod) { delete(o.Labels, appsv1.StatefulSetPodNameLabel) })
	await.Until(t, owned)
}

// A member that loses all its labels is found, too: it is given up with its claims, which go with the set no more, and
// its ordinal waits for its name without asking for it again and again.
func TestPodsThatLoseAllLabelsAreReleased(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 2, v1beta1.ReCreate, 1)
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{gen.Claim("data", "1Gi")}
	set.Spec.PersistentVolumeClaimRetentionPolicy = &v1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: "data-web-1"}}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	require.Len(t, claim.OwnerReferences, 1)
	bare := env.Pods(t, set.Namespace)[1]
	audit := env.Audit(t)
	testenv.Edit(t, c, &bare, func(o *corev1.Pod) { o.Labels = nil })
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(&bare), &bare))
		assert.Empty(collect, bare.OwnerReferences)
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		assert.Contains(collect, fmt.Sprint(set.Status.Conditions), "web-1: it exists already and has no controller")
	})
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	assert.Nil(t, claim.DeletionTimestamp)
	assert.Empty(t, claim.OwnerReferences)
	assert.LessOrEqual(t, audit.Writes(t, userAgent)["create pods"], 3)

	testenv.Edit(t, c, &bare, func(o *corev1.Pod) {
		o.Labels = map[string]string{"app": "web", appsv1.StatefulSetPodNameLabel: "web-1"}
	})
	settles(t, c, set)
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
		assert.Len(collect, claim.OwnerReferences, 1)
	})
}

// A claim that is deleted under a pod that has not started comes back: nothing but the claim's end can
// wake the set then.
func TestMissingClaimsComeBack(t *testing.T) {
	namespace := env.Namespace(t)
	startController(t, env, namespace) // no node: pods stay pending
	c := env.Client(t)
	set := newSet(namespace, 2, v1beta1.ReCreate, 1)
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{gen.Claim("the-data", "1Gi")}
	require.NoError(t, c.Create(t.Context(), set))
	wanted := func(collect *assert.CollectT) {
		assert.Equal(collect, []string{"the-data-web-0", "the-data-web-1"}, claims(t, set.Namespace))
		assert.Len(collect, env.Pods(t, set.Namespace), 2)
	}
	await.Until(t, wanted)
	lost := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: "the-data-web-1"}}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(lost), lost))
	uid := lost.UID
	require.NoError(t, c.Delete(t.Context(), lost))
	testenv.Edit(t, c, lost, func(o *corev1.PersistentVolumeClaim) { o.Finalizers = nil })
	await.Until(t, func(collect *assert.CollectT) {
		again := &corev1.PersistentVolumeClaim{}
		if assert.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(lost), again)) {
			assert.NotEqual(collect, uid, again.UID)
		}
	})
	await.Until(t, wanted)
}

// Claims grow one pod at a time; the pod follows when its claim has grown. Storage classes are read only
// for sets that ask for it.
func TestClaimsGrowWithTheUpdate(t *testing.T) {
	givenController(t, func(g *plan.FeatureGates) { g.AutoResizePVC = true })
	c := env.Client(t)
	require.NoError(t, c.Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "grows"}, Provisioner: "example.com/none", AllowVolumeExpansion: new(true),
	}))
	set := newSet(env.Namespace(t), 2, v1beta1.ReCreate, 1)
	claim := gen.Claim("data", "1Gi")
	claim.Spec.StorageClassName = new("grows")
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	audit := env.Audit(t)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	for _, r := range audit.Requests(t, userAgent) {
		assert.NotEqual(t, "storageclasses", r.Object.Resource, r.URI)
	}
	for _, name := range []string{"data-web-0", "data-web-1"} {
		provision(t, c, set.Namespace, name, "1Gi")
	}

	testenv.Edit(t, c, set, func(s *v1beta1.StatefulSet) {
		s.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdate
		s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		s.Spec.Template.Spec.Containers[0].Image = "app:2"
	})
	for i, name := range []string{"data-web-1", "data-web-0"} {
		grown := &corev1.PersistentVolumeClaim{}
		await.Until(t, func(collect *assert.CollectT) {
			require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Namespace: set.Namespace, Name: name}, grown))
			assert.Equal(collect, "2Gi", grown.Spec.Resources.Requests.Storage().String())
		})
		assert.Equal(t, "web", grown.Annotations[v1beta1.OwnedByAnnotation])
		assert.Equal(t, "app:1", env.Pods(t, set.Namespace)[1-i].Spec.Containers[0].Image, "the pod waits for its claim")
		provision(t, c, set.Namespace, name, "2Gi")
	}
	settles(t, c, set)
	assert.Equal(t, []v1beta1.VolumeClaimStatus{{VolumeClaimName: "data", CompatibleReplicas: 2, CompatibleReadyReplicas: 2}}, set.Status.VolumeClaims)
	assert.EqualValues(t, 2, set.Status.UpdatedReplicas)
}

// Nobody lets the operator read storage classes: the set is created and scaled as any other, and its claims
// grow once they can be read.
func TestUnreadableStorageClassesHoldUpGrowthOnly(t *testing.T) {
	givenNodes(t, simnodes.Options{Bind: true})
	c := env.Client(t)
	set := newSet(env.Namespace(t), 1, v1beta1.ReCreate, 1)
	claim := gen.Claim("data", "1Gi")
	claim.Spec.StorageClassName = new("unreadable")
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim}
	set.Spec.VolumeClaimUpdateStrategy.Type = v1beta1.OnPodRollingUpdate
	var readable atomic.Bool
	startController(t, faults.Over(env, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/storageclasses") && !readable.Load() {
			return nil, faults.ErrCut
		}
		return next.RoundTrip(r)
	}), set.Namespace, func(g *plan.FeatureGates) { g.AutoResizePVC = true })
	require.NoError(t, c.Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "unreadable"}, Provisioner: "example.com/none", AllowVolumeExpansion: new(true),
	}))
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	testenv.Edit(t, c, set, func(s *v1beta1.StatefulSet) { s.Spec.Replicas = new(int32(2)) })
	settles(t, c, set)

	for _, name := range []string{"data-web-1", "data-web-0"} {
		provision(t, c, set.Namespace, name, "1Gi")
	}
	testenv.Edit(t, c, set, func(s *v1beta1.StatefulSet) {
		s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	})
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		progressing := conditions.Get(set.Status.Conditions, v1beta1.StatefulSetProgressing)
		require.NotNil(collect, progressing)
		assert.Contains(collect, progressing.Message, "the StorageClasses have yet to be loaded")
	})
	readable.Store(true)
	for _, name := range []string{"data-web-1", "data-web-0"} {
		grown := &corev1.PersistentVolumeClaim{}
		await.Until(t, func(collect *assert.CollectT) {
			require.NoError(collect, c.Get(t.Context(), client.ObjectKey{Namespace: set.Namespace, Name: name}, grown))
			assert.Equal(collect, "2Gi", grown.Spec.Resources.Requests.Storage().String())
		})
		provision(t, c, set.Namespace, name, "2Gi")
	}
	settles(t, c, set)
}

// provision says what a provisioner would say of the claim: that it is bound and how large it is.
func provision(t *testing.T, c client.Client, namespace, name, size string) {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, claim))
	if claim.Spec.VolumeName == "" {
		before := claim.DeepCopy()
		claim.Spec.VolumeName = "volume-of-" + name
		require.NoError(t, c.Patch(t.Context(), claim, client.MergeFrom(before)))
	}
	before := claim.DeepCopy()
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	require.NoError(t, c.Status().Patch(t.Context(), claim, client.MergeFrom(before)))
}

// An operator restricted to one namespace sees and changes nothing elsewhere.
func TestOneNamespaceOnly(t *testing.T) {
	givenNodes(t, simnodes.Options{Bind: true})
	c := env.Client(t)
	mine, other := newSet(env.Namespace(t), 1, v1beta1.ReCreate, 1), newSet(env.Namespace(t), 1, v1beta1.ReCreate, 1)
	startController(t, env, mine.Namespace)
	require.NoError(t, c.Create(t.Context(), other))
	require.NoError(t, c.Create(t.Context(), mine))
	settles(t, c, mine)
	assert.Empty(t, env.Pods(t, other.Namespace))
}

// A set that was deleted with its pods kept and created again takes its revisions back.
func TestASetCreatedAgainTakesItsRevisionsBack(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	namespace := env.Namespace(t)
	set := newSet(namespace, 3, v1beta1.InPlaceIfPossible, 2)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	before := testenv.Identities(env.Pods(t, namespace))
	testenv.Leave(t, c, set)

	again := newSet(namespace, 3, v1beta1.InPlaceIfPossible, 2)
	require.NoError(t, c.Create(t.Context(), again))
	settles(t, c, again)
	revisions := &appsv1.ControllerRevisionList{}
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.List(t.Context(), revisions, client.InNamespace(namespace)))
		assert.Len(collect, revisions.Items, 1)
		assert.True(collect, metav1.IsControlledBy(&revisions.Items[0], again))
	})
	testenv.Edit(t, c, again, image("app:2"))
	settles(t, c, again)
	assert.Equal(t, before, testenv.Identities(env.Pods(t, namespace)))
}

// A pod that has left service for its grace period gets its update, though nobody can read the spec any more.
func TestGracePeriodsEndUnderASpoiledSpec(t *testing.T) {
	givenController(t)
	set := newSet(env.Namespace(t), 1, v1beta1.InPlaceIfPossible, 1)
	set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{GracePeriodSeconds: 4}
	workloads.Grace[*v1beta1.StatefulSet]{
		Env: &env, Set: set, Update: image("app:2"),
		Spoil: func(set *v1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromString("some%"))
		},
		Conditions: func(set *v1beta1.StatefulSet) []workload.Condition { return set.Status.Conditions },
	}.TestSpoiled(t)
}
