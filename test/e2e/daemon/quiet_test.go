package daemon

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// Only requests for pods with launch priorities call the manager, whether it runs or not.
func TestNobodyElseWaitsForTheManager(t *testing.T) {
	story.Eventually(t, "a NodeImage of every node", func(ctx context.Context) error { // each is validated when it is created
		list := &v1beta1.NodeImageList{}
		err := world.Client.List(ctx, list)
		return story.Want(err == nil && len(list.Items) == len(world.Cluster.Nodes()), "there are %d (%v)", len(list.Items), err)
	})
	world.LeavesOthersAlone(t, "daemon", func(namespace string) client.Object {
		ordered := newContainer("main", 8080)
		ordered.Env = []corev1.EnvVar{{Name: contract.ContainerPriorityEnv, Value: "1"}}
		return newPod(namespace, ordered)
	})
}
