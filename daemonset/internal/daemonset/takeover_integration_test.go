package daemonset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// operator is the part of the user agent that all clients of the operator share.
var operator = strings.SplitN(userAgent, "/", 2)[0]

// over has the labels that the sets of OpenKruise ask for.
func over(int) map[string]string { return map[string]string{"take": "over"} }

// What OpenKruise has left behind is taken over as it is: whatever its DaemonSets were doing, nothing but their statuses
// is written.
func TestTakingOverWritesStatusesOnly(t *testing.T) {
	for _, tt := range []struct {
		name, update string
		updated      int32
	}{
		{name: "settled", update: "74d9695b7c", updated: 3},
		{name: "updating", update: "64dd685fc9", updated: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.True(t, t.Run("nodes", func(t *testing.T) { givenNodes(t, simnodes.Options{Labels: over}) }))
			namespace := givenLeftovers(t, tt.name)
			c := env.Client(t)
			pods, revisions := env.Pods(t, namespace), revisionsOf(t, namespace)
			audit := env.Audit(t)

			startController(t, env, namespace)
			set := agent(namespace)
			settles(t, c, set, nodeCount, tt.updated)
			// Another pass, forced by an edit that concerns no pod.
			testenv.Edit(t, c, set, func(s *v1beta1.DaemonSet) { s.Spec.MinReadySeconds = 1 })
			settles(t, c, set, nodeCount, tt.updated)

			assert.Equal(t, []string{"patch daemonsets/status"}, audit.Kinds(t, operator, namespace))
			assert.Equal(t, pods, env.Pods(t, namespace))
			assert.Equal(t, revisions, revisionsOf(t, namespace))
			assert.Equal(t, tt.update, set.Status.UpdateRevision)
		})
	}
}

// What waits at its partition goes on when that is lowered, and a new image goes into the pods that were taken over.
func TestTakenOverRolloutsGoOnInPlace(t *testing.T) {
	namespace := givenLeftovers(t, "updating")
	givenNodes(t, simnodes.Options{Labels: over})
	c := env.Client(t)
	startController(t, env, namespace)
	set := agent(namespace)
	settles(t, c, set, nodeCount, 2)
	before, revisions := testenv.Identities(env.Pods(t, namespace)), revisionsOf(t, namespace)
	testenv.Edit(t, c, set, keep(0))
	settles(t, c, set, nodeCount, nodeCount)
	assert.Equal(t, before, testenv.Identities(env.Pods(t, namespace)))
	assert.Equal(t, revisions, revisionsOf(t, namespace))
	assert.Equal(t, map[string]int{"nginx:1.15.1 restarted 1": 3}, restarts(t, namespace))

	testenv.Edit(t, c, set, image("nginx:1.16.0"))
	settles(t, c, set, nodeCount, nodeCount)
	assert.Equal(t, before, testenv.Identities(env.Pods(t, namespace)))
	assert.Equal(t, map[string]int{"nginx:1.16.0 restarted 2": 3}, restarts(t, namespace))
}

// What the built-in DaemonSet leaves when it is deleted with its pods kept is taken over in place: pods and their
// revision get an owner, and nothing else happens to them.
func TestSwitchFromTheBuiltInKindRestartsNothing(t *testing.T) {
	namespace := givenLeftovers(t, "built-in")
	givenNodes(t, simnodes.Options{})
	c := env.Client(t)
	startController(t, env, namespace)
	before := testenv.Identities(env.Pods(t, namespace))
	set := newSet(namespace)
	audit := env.Audit(t)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set, nodeCount, nodeCount)
	testenv.Edit(t, c, set, func(s *v1beta1.DaemonSet) { s.Spec.RevisionHistoryLimit = new(int32(5)) })
	settles(t, c, set, nodeCount, nodeCount)
	pods := env.Pods(t, namespace)
	assert.Equal(t, before, testenv.Identities(pods))
	assert.Equal(t, "6d8f7c9b5d", set.Status.UpdateRevision, "the hash of the revision that was left behind")
	for i := range pods {
		assert.True(t, metav1.IsControlledBy(&pods[i], set), pods[i].Name)
	}
	kinds := audit.Kinds(t, operator, namespace)
	assert.NotContains(t, kinds, "create pods")
	assert.NotContains(t, kinds, "delete pods")
	require.Len(t, revisionsOf(t, namespace), 1)
	assert.Equal(t, map[string]int{"app:1 restarted 0": 3}, restarts(t, namespace))

	testenv.Edit(t, c, set, image("app:2"))
	settles(t, c, set, nodeCount, nodeCount)
	for _, pod := range testenv.Identities(env.Pods(t, namespace)) {
		assert.NotContains(t, before, pod, "the next edit is a rollout like any other")
	}
}

func givenLeftovers(t *testing.T, name string) (namespace string) {
	t.Helper()
	env.Need(t)
	return env.Leftovers(t, "testdata/takeover/"+name+".yaml")
}

func agent(namespace string) *v1beta1.DaemonSet {
	return &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "agent"}}
}

func revisionsOf(t *testing.T, namespace string) []appsv1.ControllerRevision {
	t.Helper()
	list := &appsv1.ControllerRevisionList{}
	require.NoError(t, env.Client(t).List(t.Context(), list, client.InNamespace(namespace)))
	return list.Items
}

// restarts counts the images of the pods' only container with its restarts.
func restarts(t *testing.T, namespace string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, o := range env.Pods(t, namespace) {
		for _, s := range o.Status.ContainerStatuses {
			all[fmt.Sprintf("%s restarted %d", s.Image, s.RestartCount)]++
		}
	}
	return all
}
