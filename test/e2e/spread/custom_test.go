package spread

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// gameServers has the kind GameServerSet, with what lets the operator spread it.
const gameServers = "testdata/gameservers.yaml"

// gameServerKind is how the cluster names the kind.
var gameServerKind = schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "GameServerSet"}

func gameServerSets() client.Object {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gameServerKind)
	return o
}

// allowGameServers installs the kind GameServerSet while the operator runs, for the rest of the run.
func allowGameServers(t *testing.T) {
	t.Helper()
	said, err := world.Kubectl(t, "", "apply", "-f", gameServers)
	require.NoError(t, err, said)
	said, err = world.Kubectl(t, "", "wait", "--for=condition=Established", "--timeout=1m", "crd/gameserversets.example.io")
	require.NoError(t, err, said)
	story.Eventually(t, "clients find the new kind", func(context.Context) error {
		_, err := world.Client.RESTMapper().RESTMapping(gameServerKind.GroupKind(), gameServerKind.Version)
		return err
	})
}

// A kind that a ConfigMap names is spread like the others. Its scale says what a percentage is of, and its pods belong to
// a ReplicaSet between.
func TestAKindThatAConfigMapNamesIsSpread(t *testing.T) {
	t.Parallel()
	allowGameServers(t)
	k := kind(gameServerSets)
	namespace := world.Namespace(t)
	workload := k.givenWorkload(t, namespace, 4)
	label := zones(t, namespace)
	spread := k.givenSpread(t, namespace, []v1beta1.WorkloadSpreadSubset{
		newSubset("a", label, new(intstr.FromString("50%"))), newSubset("b", label, nil),
	})
	between, ok := kind(replicaSets).newWorkload(t, namespace, 4, newTemplate()).(*appsv1.ReplicaSet)
	require.True(t, ok)
	between.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(workload, gameServerKind)}
	require.NoError(t, world.Client.Create(t.Context(), between))
	settlesWith(t, spread, map[string]int{"a in zone a": 2, "b in zone b": 2})

	scale(t, workload, 8)
	story.Reaches(t, world, spread, "the share of eight", func(s *v1beta1.WorkloadSpread) error {
		return story.Want(s.Status.SubsetStatuses[0].MissingReplicas == 2, "status is %+v", s.Status)
	})
	scale(t, between, 8)
	settlesWith(t, spread, map[string]int{"a in zone a": 4, "b in zone b": 4})
}
