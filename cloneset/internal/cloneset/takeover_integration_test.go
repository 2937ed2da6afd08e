package cloneset_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// What OpenKruise has left behind is taken over as it is: whatever its CloneSets were doing, nothing
// but their statuses is written.
func TestTakingOverWritesStatusesOnly(t *testing.T) {
	tests := []struct {
		name                     string
		current, update          string
		updated, expectedUpdated int32
	}{
		{name: "settled", current: "web-d554877cb", update: "web-d554877cb", updated: 4, expectedUpdated: 3},
		{name: "updating", current: "web-d554877cb", update: "web-b4bdfd798", updated: 3, expectedUpdated: 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			namespace := env.Leftovers(t, "testdata/takeover/"+tt.name+".yaml")
			c := env.Client(t)
			pods, revisions := env.Pods(t, namespace), revisionsOf(t, namespace)
			audit := env.Audit(t)

			startController(t, "")
			takenOver(t, c, namespace)
			// Another pass over everything, forced by an edit that concerns no pod.
			for _, set := range []*v1beta1.CloneSet{web(namespace), spread(namespace)} {
				edit(t, c, set, func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 1 })
			}
			set := takenOver(t, c, namespace)

			assert.Equal(t, []string{"patch clonesets/status"}, audit.Kinds(t, userAgent, namespace))
			assert.Equal(t, pods, env.Pods(t, set.Namespace))
			assert.Equal(t, revisions, revisionsOf(t, namespace))
			assert.Equal(t, tt.current, set.Status.CurrentRevision)
			assert.Equal(t, tt.update, set.Status.UpdateRevision)
			assert.Equal(t, tt.updated, set.Status.UpdatedReplicas)
			assert.Equal(t, tt.expectedUpdated, set.Status.ExpectedUpdatedReplicas)
			assert.Empty(t, conditionOf(set, v1beta1.CloneSetFailedUpdate), "a failure of the past is forgotten")
		})
	}
}

// A new image goes into the pods that were taken over, up to the partition.
func TestTakenOverPodsAreUpdatedInPlace(t *testing.T) {
	namespace := env.Leftovers(t, "testdata/takeover/settled.yaml")
	c := env.Client(t)
	givenNodes(t, simnodes.Options{Prefix: "sim-000"})
	startController(t, "")
	set := takenOver(t, c, namespace)
	before := testenv.Identities(env.Pods(t, set.Namespace))

	edit(t, c, set, image("nginx:1.15.1"))
	settles(t, c, set)
	assert.EqualValues(t, 3, set.Status.UpdatedReplicas)
	assert.Equal(t, "web-d554877cb", set.Status.CurrentRevision)
	assert.NotEqual(t, set.Status.CurrentRevision, set.Status.UpdateRevision)
	assert.Zero(t, *set.Status.CollisionCount)
	assert.Equal(t, before, testenv.Identities(env.Pods(t, set.Namespace)))
	assert.Equal(t, map[string]int{"nginx:1.15.1 restarted 1": 3, "nginx:1.14.2 restarted 0": 1}, images(env.Pods(t, namespace)))
}

// What waits at its partition goes on when that is lowered.
func TestTakenOverRolloutsGoOn(t *testing.T) {
	namespace := env.Leftovers(t, "testdata/takeover/updating.yaml")
	c := env.Client(t)
	givenNodes(t, simnodes.Options{Prefix: "sim-000"})
	startController(t, "")
	set := takenOver(t, c, namespace)
	before, revisions := testenv.Identities(env.Pods(t, set.Namespace)), revisionsOf(t, namespace)

	edit(t, c, set, func(s *v1beta1.CloneSet) {
		s.Spec.UpdateStrategy.RollingUpdate.Partition = new(intstr.FromInt32(0))
	})
	settles(t, c, set)
	assert.EqualValues(t, 4, set.Status.UpdatedReplicas)
	assert.Equal(t, "web-b4bdfd798", set.Status.CurrentRevision)
	assert.Equal(t, before, testenv.Identities(env.Pods(t, set.Namespace)))
	assert.Equal(t, map[string]int{"nginx:1.15.1 restarted 1": 4}, images(env.Pods(t, set.Namespace)))
	assert.Equal(t, revisions, revisionsOf(t, namespace))
}

// A pod that was taken out of service for its grace period when the operators changed gets its image,
// though its record has the keys of old.
func TestTakenOverGracePeriodsEnd(t *testing.T) {
	namespace := env.Leftovers(t, "testdata/takeover/updating.yaml", changed(t, "Pod", midway, inGrace))
	c := env.Client(t)
	givenNodes(t, simnodes.Options{Prefix: "sim-000"})
	startController(t, "")
	eventually(t, func(collect *assert.CollectT) {
		o := &corev1.Pod{}
		if assert.NoError(collect, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: midway}, o)) {
			assert.Equal(collect, "nginx:1.15.1", o.Spec.Containers[0].Image)
			assert.Equal(collect, contract.LifecycleNormal, o.Labels[contract.LifecycleStateLabel])
			assert.NotContains(collect, o.Annotations, contract.LegacyInPlaceUpdateGraceAnnotation)
			assert.NotContains(collect, o.Annotations, contract.LegacyInPlaceUpdateStateAnnotation)
		}
	})
	set := takenOver(t, c, namespace)
	assert.EqualValues(t, 4, set.Status.UpdatedReplicas)
	assert.Equal(t, map[string]int{"nginx:1.15.1 restarted 1": 4}, images(env.Pods(t, set.Namespace)))
}

// inGrace is the pod as it stands between leaving service and the change of its image.
func inGrace(o *corev1.Pod) {
	outOfService(o)
	o.Annotations[contract.LegacyInPlaceUpdateStateAnnotation] = `{"revision":"web-b4bdfd798","updateTimestamp":"2026-11-20T10:32:58Z","lastContainerStatuses":null}`
	o.Annotations[contract.LegacyInPlaceUpdateGraceAnnotation] = `{"revision":"web-b4bdfd798","containerImages":{"main":"nginx:1.15.1"},"graceSeconds":2}`
}

func web(namespace string) *v1beta1.CloneSet {
	return &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
}

func spread(namespace string) *v1beta1.CloneSet {
	return &v1beta1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "spread"}}
}

// takenOver waits until both sets of the namespace are as they should be, and returns set web.
func takenOver(t *testing.T, c client.Client, namespace string) *v1beta1.CloneSet {
	t.Helper()
	settles(t, c, spread(namespace))
	set := web(namespace)
	settles(t, c, set)
	return set
}

func revisionsOf(t *testing.T, namespace string) []appsv1.ControllerRevision {
	t.Helper()
	list := &appsv1.ControllerRevisionList{}
	require.NoError(t, env.Client(t).List(t.Context(), list, client.InNamespace(namespace)))
	return list.Items
}

// images counts the images of container main of the pods of CloneSet web, and its restarts. Container
// side must not have been touched.
func images(pods []corev1.Pod) map[string]int {
	count := map[string]int{}
	for i := range pods {
		if pods[i].Labels["app"] != "web" {
			continue
		}
		for _, s := range pods[i].Status.ContainerStatuses {
			if s.Name == "main" || s.RestartCount != 0 {
				count[fmt.Sprintf("%s restarted %d", s.Image, s.RestartCount)]++
			}
		}
	}
	return count
}
