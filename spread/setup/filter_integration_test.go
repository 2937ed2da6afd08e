package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/plan"
)

func trainingJob() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "example.io/v1", Kind: "TrainingJob"}
}

// training is a job whose pods have roles, without a scale.
func training(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	return workload(t, namespace, trainingJob(), "{roles: {ps: {replicas: 1}, master: {replicas: 5}, worker: {replicas: 4}}, groups: [{size: 1}, {size: 4}]}")
}

// limits sets what the subsets may have.
func limits(s *v1beta1.WorkloadSpread, most ...string) {
	for i := range most {
		s.Spec.Subsets[i].MaxReplicas = new(intstr.Parse(most[i]))
	}
}

// A filter says which of a workload's pods are injected and counted, and its paths how many of them are wanted; without a
// selector all are. Where nothing says how many are wanted, numbers limit, and percentages leave no room.
func TestAPartOfAWorkloadIsSpread(t *testing.T) {
	env.Need(t)
	workers := &metav1.LabelSelector{MatchLabels: map[string]string{"role": "worker"}}
	for name, story := range map[string]struct {
		path    string // in the ConfigMap
		filter  *v1beta1.TargetFilter
		limits  []string
		roles   []string // of the pods, in the order in which they are created
		subsets []string // that they get
		want    string
	}{
		"by the path of the kind": {
			path: "spec.roles.master.replicas", limits: []string{"20%", "80%"},
			roles: []string{"ps", "master", "master", "master"}, subsets: []string{"a", "b", "b", "b"}, want: "1/0 3/1",
		},
		"by a selector and a path": {
			path:   "spec.roles.master.replicas",
			filter: &v1beta1.TargetFilter{Selector: workers, ReplicasPathList: []string{"spec.roles.worker.replicas"}}, limits: []string{"25%", "75%"},
			roles: []string{"ps", "master", "worker", "worker"}, subsets: []string{"", "", "a", "b"}, want: "1/0 1/2",
		},
		"by paths alone": {
			filter: &v1beta1.TargetFilter{ReplicasPathList: []string{"spec.roles.ps.replicas", "spec.groups.1.size"}}, limits: []string{"20%", "80%"},
			roles: []string{"ps", "worker", "worker"}, subsets: []string{"a", "b", "b"}, want: "1/0 2/2",
		},
		"by a selector alone": {
			filter: &v1beta1.TargetFilter{Selector: workers}, limits: []string{"1", "5"},
			roles: []string{"ps", "worker", "worker"}, subsets: []string{"", "a", "b"}, want: "1/0 1/4",
		},
		"numbers, of unknown replicas": {
			limits: []string{"2", "5"}, roles: []string{"ps", "master", "worker"}, subsets: []string{"a", "a", "b"}, want: "2/0 1/4",
		},
		"percentages, of unknown replicas": {
			limits: []string{"20%", "80%"}, roles: []string{"ps"}, subsets: []string{""}, want: "0/0 0/0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			allowAll(t, `{"Group":"example.io","Version":"v1","Kind":"TrainingJob","replicasPath":"`+story.path+`"}`)
			c := serve(t)
			namespace := env.Namespace(t)
			job := training(t, namespace)
			require.NoError(t, c.Create(t.Context(), job))
			s := spreadOf(namespace, trainingJob(), 0)
			s.Spec.TargetFilter = story.filter
			limits(s, story.limits...)
			require.NoError(t, c.Create(t.Context(), s))
			await.Until(t, func(check *assert.CollectT) { // the API server has a watch of its own for labels
				require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(s), s))
				assert.Equal(check, s.Generation, s.Status.ObservedGeneration)
			})
			var got []string
			for _, role := range story.roles {
				pod := newPod(job, trainingJob(), "", map[string]string{"role": role})
				require.NoError(t, c.Create(t.Context(), pod))
				got = append(got, subsetOf(pod))
			}
			assert.Equal(t, story.subsets, got)
			settled(t, c, s, story.want)
		})
	}
}

// Where a path leads to no number no pod is refused: the percentages leave no room, and an event says why.
func TestAPathToNoNumberRefusesNoPod(t *testing.T) {
	env.Need(t)
	allowAll(t, `{"Group":"example.io","Version":"v1","Kind":"TrainingJob","replicasPath":"spec.none"}`)
	c := serve(t)
	namespace := env.Namespace(t)
	job := training(t, namespace)
	require.NoError(t, c.Create(t.Context(), job))
	s := spreadOf(namespace, trainingJob(), 0)
	limits(s, "50%")
	require.NoError(t, c.Create(t.Context(), s))
	settled(t, c, s, "0/0 0/-1")
	pod := newPod(job, trainingJob(), "", nil)
	require.NoError(t, c.Create(t.Context(), pod))
	assert.Equal(t, "b", subsetOf(pod))
	settled(t, c, s, "0/0 1/-1")
	await.Until(t, func(check *assert.CollectT) {
		var events eventsv1.EventList
		require.NoError(check, c.List(t.Context(), &events, client.InNamespace(namespace)))
		require.NotEmpty(check, events.Items)
		assert.Equal(check, plan.EventTargetUnknown, events.Items[0].Reason)
		assert.Contains(check, events.Items[0].Note, "invalid number of replicas at path spec.none: none is missing")
	})
}

// What the ConfigMap names may stand between a workload and its pods.
func TestPodsAreFoundThroughWhatIsBetween(t *testing.T) {
	env.Need(t)
	allowAll(t, `{"group":"example.io","version":"v1","kind":"GameServerSet","subResources":[{"group":"example.io","version":"v1","kind":"GameServer"}]}`)
	c := serve(t)
	namespace := env.Namespace(t)
	set := workload(t, namespace, gameServerSet(), "{replicas: 2}")
	require.NoError(t, c.Create(t.Context(), set))
	s := spreadOf(namespace, gameServerSet(), 0)
	limits(s, "50%")
	require.NoError(t, c.Create(t.Context(), s))
	settled(t, c, s, "0/1 0/-1")
	for _, want := range []string{"a", "b"} {
		between := metav1.TypeMeta{APIVersion: "example.io/v1", Kind: "GameServer"}
		server := workload(t, namespace, between, "{}")
		server.SetName("web-" + want)
		server.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())})
		require.NoError(t, c.Create(t.Context(), server))
		pod := newPod(server, between, "", nil)
		require.NoError(t, c.Create(t.Context(), pod))
		assert.Equal(t, want, subsetOf(pod))
	}
	settled(t, c, s, "1/0 1/-1")
}

// A ConfigMap that cannot be understood is the trouble of the kinds that it names alone.
func TestABrokenConfigMapConcernsNoBuiltInKind(t *testing.T) {
	env.Need(t)
	allowAll(t, "{")
	c := serve(t)
	namespace := env.Namespace(t)
	owner, s := newReplicaSet(namespace, 4), newSpread(namespace, intstr.FromString("50%"))
	require.NoError(t, c.Create(t.Context(), owner))
	require.NoError(t, c.Create(t.Context(), s))
	settled(t, c, s, "0/2 0/-1")
	assert.Equal(t, map[string]int{"a": 2, "b": 2}, create(t, c, owner, 4))
	settled(t, c, s, "2/0 2/-1")
}
