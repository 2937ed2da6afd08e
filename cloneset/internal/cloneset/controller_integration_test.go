package cloneset_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/workloads"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
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
	edit(t, c, set, image("app:2"))
	settles(t, c, set)
	eventually(t, func(collect *assert.CollectT) {
		assert.Equal(collect, 20, audit.Writes(t, userAgent)["patch pods/status"])
	})
	writes = audit.Writes(t, userAgent)
	assert.Equal(t, 10, writes["patch pods"])
	assert.Zero(t, writes["create pods"]+writes["delete pods"])
	assert.Equal(t, before, testenv.Identities(env.Pods(t, set.Namespace)))
	for _, o := range env.Pods(t, set.Namespace) {
		assert.Equal(t, "app:2", o.Spec.Containers[0].Image)
		assert.EqualValues(t, 1, o.Status.ContainerStatuses[0].RestartCount)
	}

	audit = env.Audit(t)
	edit(t, c, set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(4)) })
	settles(t, c, set)
	writes = audit.Writes(t, userAgent)
	assert.Equal(t, 6, writes["delete pods"])
	assert.Zero(t, writes["patch pods/status"]+writes["patch pods"])
}

func TestRecreate(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 3, v1beta1.ReCreate, 1)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	before := testenv.Identities(env.Pods(t, set.Namespace))
	edit(t, c, set, image("app:2"))
	settles(t, c, set)
	for _, o := range testenv.Identities(env.Pods(t, set.Namespace)) {
		assert.NotContains(t, before, o)
	}
	assert.Equal(t, set.Status.UpdateRevision, set.Status.CurrentRevision)
}

func TestRollbackTakesTheOldRevision(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 2, v1beta1.InPlaceIfPossible, 1)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	first := set.Status.UpdateRevision
	edit(t, c, set, image("app:2"))
	settles(t, c, set)
	assert.NotEqual(t, first, set.Status.UpdateRevision)
	edit(t, c, set, image("app:1"))
	settles(t, c, set)
	assert.Equal(t, first, set.Status.UpdateRevision)
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
	edit(t, c, set, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways
		s.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
		s.Spec.Template.Spec.Containers[0].TerminationMessagePath = "/dev/termination-log"
	})
	settles(t, c, set)
	assert.Equal(t, revision, set.Status.UpdateRevision)
	assert.Equal(t, before, testenv.Identities(env.Pods(t, set.Namespace)))
}

func TestNamedPodsAreReplacedAndForgotten(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 3, v1beta1.ReCreate, 1)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	doomed := env.Pods(t, set.Namespace)[0].Name
	edit(t, c, set, func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.PodsToDelete = []string{doomed} })
	eventually(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		assert.Empty(collect, set.Spec.ScaleStrategy.PodsToDelete)
	})
	settles(t, c, set)
	for _, o := range env.Pods(t, set.Namespace) {
		assert.NotEqual(t, doomed, o.Name)
	}
}

func TestClaimsComeAndGoWithTheirPods(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 2, v1beta1.ReCreate, 1)
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{gen.Claim("data", "1Gi")}
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	claims := func() int {
		list := &corev1.PersistentVolumeClaimList{}
		require.NoError(t, c.List(t.Context(), list, client.InNamespace(set.Namespace)))
		n := 0
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp == nil {
				n++
			}
		}
		return n
	}
	assert.Equal(t, 2, claims())
	edit(t, c, set, func(s *v1beta1.CloneSet) { s.Spec.Replicas = new(int32(1)) })
	settles(t, c, set)
	eventually(t, func(collect *assert.CollectT) { assert.Equal(collect, 1, claims()) })
}

func TestOrphansAreAdopted(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	namespace := env.Namespace(t)
	template := gen.Template(gen.Label("app", "web"), gen.Image("main", "app:0"))
	require.NoError(t, c.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "stray", Namespace: namespace, Labels: template.Labels}, Spec: template.Spec,
	}))
	set := newSet(namespace, 2, v1beta1.ReCreate, 1)
	set.Spec.UpdateStrategy = v1beta1.CloneSetUpdateStrategy{Type: v1beta1.OnDelete}
	require.NoError(t, c.Create(t.Context(), set))
	eventually(t, func(collect *assert.CollectT) {
		pods := env.Pods(t, set.Namespace)
		assert.Len(collect, pods, 2)
		for i := range pods {
			assert.Len(collect, pods[i].OwnerReferences, 1, pods[i].Name)
		}
	})
}

// A pod that loses its instance id leaves the operator's cache. It is found again before another one is made in
// its place.
func TestLostIDsAreGivenBack(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	set := newSet(env.Namespace(t), 2, v1beta1.InPlaceIfPossible, 1)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	before := env.Pods(t, set.Namespace)
	audit := env.Audit(t)
	bare := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, contract.InstanceIDLabel))
	require.NoError(t, c.Patch(t.Context(), before[0].DeepCopy(), bare))
	eventually(t, func(collect *assert.CollectT) {
		pod := &corev1.Pod{}
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(&before[0]), pod))
		assert.Equal(collect, before[0].UID, pod.UID)
		assert.Equal(collect, before[0].Labels, pod.Labels)
	})
	settles(t, c, set)
	writes := audit.Writes(t, userAgent)
	assert.NotContains(t, writes, "create pods")
	assert.NotContains(t, writes, "delete pods")
}

// An operator restricted to one namespace sees and changes nothing elsewhere.
func TestOneNamespaceOnly(t *testing.T) {
	givenNodes(t, simnodes.Options{Bind: true})
	c := env.Client(t)
	mine, other := newSet(env.Namespace(t), 1, v1beta1.ReCreate, 1), newSet(env.Namespace(t), 1, v1beta1.ReCreate, 1)
	startController(t, mine.Namespace)
	require.NoError(t, c.Create(t.Context(), other))
	require.NoError(t, c.Create(t.Context(), mine))
	settles(t, c, mine)
	assert.Empty(t, env.Pods(t, other.Namespace))
}

// A used up quota keeps pods from being made, and no pod from being updated.
func TestUsedUpQuotasHoldUpNoUpdate(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	namespace := env.Namespace(t)
	three := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota", Namespace: namespace}, Spec: corev1.ResourceQuotaSpec{Hard: three}}
	require.NoError(t, c.Create(t.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: three, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
	require.NoError(t, c.Status().Update(t.Context(), quota)) // no quota controller runs here
	set := newSet(namespace, 4, v1beta1.InPlaceIfPossible, 2)
	require.NoError(t, c.Create(t.Context(), set))
	atImage := func(name string) func(collect *assert.CollectT) {
		return func(collect *assert.CollectT) {
			require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
			assert.Equal(collect, int32(3), set.Status.AvailableReplicas)
			assert.Equal(collect, "True", conditionOf(set, v1beta1.CloneSetFailedScale))
			for _, o := range env.Pods(t, set.Namespace) {
				assert.Equal(collect, name, o.Spec.Containers[0].Image)
			}
		}
	}
	eventually(t, atImage("app:1"))
	edit(t, c, set, image("app:2"))
	eventually(t, atImage("app:2"))
	require.NoError(t, c.Delete(t.Context(), set)) // it would be tried for ever, and be counted with other tests' writes
}

// A set that was deleted with its pods kept and created again takes its revisions back.
func TestASetCreatedAgainTakesItsRevisionsBack(t *testing.T) {
	givenController(t)
	c := env.Client(t)
	namespace := env.Namespace(t)
	set := newSet(namespace, 3, v1beta1.InPlaceIfPossible, 2)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	before := testenv.Identities(env.Pods(t, set.Namespace))
	testenv.Leave(t, c, set)

	audit := env.Audit(t)
	again := newSet(namespace, 3, v1beta1.InPlaceIfPossible, 2)
	require.NoError(t, c.Create(t.Context(), again))
	settles(t, c, again)
	eventually(t, func(collect *assert.CollectT) {
		revisions := revisionsOf(t, namespace)
		assert.Len(collect, revisions, 1)
		assert.True(collect, metav1.IsControlledBy(&revisions[0], again))
	})
	edit(t, c, again, image("app:2"))
	settles(t, c, again)
	assert.Equal(t, before, testenv.Identities(env.Pods(t, again.Namespace)))
	assert.Equal(t, 1, audit.Writes(t, userAgent)["patch controllerrevisions"])
}

// A pod that has left service for its grace period gets its update, though nobody can read the spec any more.
func TestGracePeriodsEndUnderASpoiledSpec(t *testing.T) {
	givenController(t)
	set := newSet(env.Namespace(t), 1, v1beta1.InPlaceIfPossible, 1)
	set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &workload.InPlaceUpdateStrategy{GracePeriodSeconds: 4}
	workloads.Grace[*v1beta1.CloneSet]{
		Env: &env, Set: set, Update: image("app:2"),
		Spoil: func(set *v1beta1.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = new(intstr.FromString("some%"))
		},
		Conditions: func(set *v1beta1.CloneSet) []workload.Condition { return set.Status.Conditions },
	}.TestSpoiled(t)
}
