package statefulset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// operator is the part of the user agent that all clients of the operator share.
var operator = strings.SplitN(userAgent, "/", 2)[0]

// What OpenKruise has left behind is taken over as it is: whatever its StatefulSets were doing, nothing
// but their statuses is written.
func TestTakingOverWritesStatusesOnly(t *testing.T) {
	tests := []struct {
		name            string
		current, update string
		updated         int32
	}{
		{name: "settled", current: "db-55bc77b95", update: "db-55bc77b95", updated: 3},
		{name: "updating", current: "db-55bc77b95", update: "db-6f96bb94cc", updated: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			namespace := givenLeftovers(t, tt.name)
			c := env.Client(t)
			pods, revisions := env.Pods(t, namespace), revisionsOf(t, namespace)
			audit := env.Audit(t)

			startController(t, env, namespace)
			set := database(namespace)
			settles(t, c, set)
			// Another pass over everything, forced by an edit that concerns no pod.
			testenv.Edit(t, c, set, func(s *v1beta1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.MinReadySeconds = new(int32(1)) })
			settles(t, c, set)

			assert.Equal(t, []string{"patch statefulsets/status"}, audit.Kinds(t, operator, namespace))
			assert.Equal(t, pods, env.Pods(t, namespace))
			assert.Equal(t, revisions, revisionsOf(t, namespace))
			assert.Equal(t, tt.current, set.Status.CurrentRevision)
			assert.Equal(t, tt.update, set.Status.UpdateRevision)
			assert.Equal(t, tt.updated, set.Status.UpdatedReplicas)
		})
	}
}

// A new image goes into the pods that were taken over, and a reserved ordinal stays reserved.
func TestTakenOverPodsAreUpdatedInPlace(t *testing.T) {
	namespace := givenLeftovers(t, "settled")
	c := env.Client(t)
	givenNodes(t, simnodes.Options{Prefix: "sim-000"})
	startController(t, env, namespace)
	set := database(namespace)
	settles(t, c, set)
	before := testenv.Identities(env.Pods(t, namespace))
	testenv.Edit(t, c, set, both(image("nginx:1.15.1"), keep(1)))
	settles(t, c, set)
	assert.EqualValues(t, 2, set.Status.UpdatedReplicas)
	assert.Equal(t, "db-55bc77b95", set.Status.CurrentRevision)
	assert.Zero(t, *set.Status.CollisionCount)
	assert.Equal(t, before, testenv.Identities(env.Pods(t, namespace)))
	assert.Equal(t, []string{"db-0 nginx:1.14.2 restarted 0", "db-2 nginx:1.15.1 restarted 1", "db-3 nginx:1.15.1 restarted 1"}, images(t, namespace))
}

// What waits at its partition goes on when that is lowered.
func TestTakenOverRolloutsGoOn(t *testing.T) {
	namespace := givenLeftovers(t, "updating")
	c := env.Client(t)
	givenNodes(t, simnodes.Options{Prefix: "sim-000"})
	startController(t, env, namespace)
	set := database(namespace)
	settles(t, c, set)
	before, revisions := testenv.Identities(env.Pods(t, namespace)), revisionsOf(t, namespace)
	testenv.Edit(t, c, set, keep(0))
	settles(t, c, set)
	assert.EqualValues(t, 3, set.Status.UpdatedReplicas)
	assert.Equal(t, "db-6f96bb94cc", set.Status.CurrentRevision)
	assert.Equal(t, before, testenv.Identities(env.Pods(t, namespace)))
	assert.Equal(t, []string{"db-0 nginx:1.15.1 restarted 1", "db-2 nginx:1.15.1 restarted 1", "db-3 nginx:1.15.1 restarted 1"}, images(t, namespace))
	assert.Equal(t, revisions, revisionsOf(t, namespace))
}

func givenLeftovers(t *testing.T, name string) (namespace string) {
	t.Helper()
	env.Need(t)
	return env.Leftovers(t, "testdata/takeover/"+name+".yaml")
}

func database(namespace string) *v1beta1.StatefulSet {
	return &v1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}}
}

func revisionsOf(t *testing.T, namespace string) []appsv1.ControllerRevision {
	t.Helper()
	list := &appsv1.ControllerRevisionList{}
	require.NoError(t, env.Client(t).List(t.Context(), list, client.InNamespace(namespace)))
	return list.Items
}

// images are those of the pods' only container, and its restarts.
func images(t *testing.T, namespace string) []string {
	t.Helper()
	var all []string
	for _, o := range env.Pods(t, namespace) {
		for _, s := range o.Status.ContainerStatuses {
			all = append(all, fmt.Sprintf("%s %s restarted %d", o.Name, s.Image, s.RestartCount))
		}
	}
	return all
}

// What the built-in StatefulSet leaves when it is deleted with its pods kept is taken over in place:
// pods and their revision get an owner, and nothing else happens to them, though the built-in kind
// reads an absent imagePullPolicy in another way. The next edit is a rollout like any other.
func TestSwitchFromTheBuiltInKindRestartsNothing(t *testing.T) {
	namespace := givenLeftovers(t, "built-in")
	c := env.Client(t)
	givenNodes(t, simnodes.Options{Prefix: "sim-000", Bind: true})
	startController(t, env, namespace)
	before := testenv.Identities(env.Pods(t, namespace))
	set := newSet(namespace, 2, v1beta1.ReCreate, 1)
	set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	set.Spec.Template.Spec.Containers[0].Image = "app:1"
	audit := env.Audit(t)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set)
	testenv.Edit(t, c, set, func(s *v1beta1.StatefulSet) { s.Spec.RevisionHistoryLimit = new(int32(5)) })
	settles(t, c, set)
	assert.Equal(t, before, testenv.Identities(env.Pods(t, namespace)))
	assert.EqualValues(t, 2, set.Status.UpdatedReplicas)
	assert.Equal(t, set.Status.CurrentRevision, set.Status.UpdateRevision)
	assert.Equal(t, []string{"web-0 app:1 restarted 0", "web-1 app:1 restarted 0"}, images(t, namespace))
	for _, o := range env.Pods(t, namespace) {
		assert.True(t, metav1.IsControlledBy(&o, set), o.Name)
	}
	kinds := audit.Kinds(t, operator, namespace)
	for _, kind := range []string{"create pods", "delete pods"} {
		assert.False(t, slices.Contains(kinds, kind), kinds)
	}

	testenv.Edit(t, c, set, image("app:2"))
	settles(t, c, set)
	for _, o := range env.Pods(t, namespace) {
		assert.Equal(t, corev1.PullAlways, o.Spec.Containers[0].ImagePullPolicy)
		assert.Equal(t, "app:2", o.Spec.Containers[0].Image)
	}
}
