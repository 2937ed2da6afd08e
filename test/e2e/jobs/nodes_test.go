package jobs

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/install"
	"github.com/flotilla-project/flotilla/test/story"
)

// A node that is down holds nobody up. It is taken out of the cluster, and the one that joins in its place gets its pod.
// The story does not run beside others, which need all nodes.
func TestANodeIsDownAndOneIsAdded(t *testing.T) {
	all, down := len(nodes()), spareNode(t)
	crashNode(t, down)
	complete, serve := newBroadcastJob(t, "sleep", "1s"), newBroadcastJob(t, "sleep", "1s")
	serve.Spec.CompletionPolicy.Type = v1beta1.CompletionNever
	for _, job := range []*v1beta1.BroadcastJob{complete, serve} {
		require.NoError(t, world.Client.Create(t.Context(), job))
	}
	ran := func(job *v1beta1.BroadcastJob, phase v1beta1.BroadcastJobPhase, n int) {
		t.Helper()
		story.Reaches(t, world, job, "success", func(job *v1beta1.BroadcastJob) error {
			s := &job.Status
			return story.Want(s.Phase == phase && int(s.Succeeded) == n && int(s.Desired) == n, "status is %+v", s)
		})
	}
	ran(complete, v1beta1.PhaseCompleted, all-1)
	ran(serve, v1beta1.PhaseRunning, all-1)
	assert.NotContains(t, nodesOf(world.Pods(t, serve.Namespace)), down.Name())

	require.NoError(t, world.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: down.Name()}}))
	require.NoError(t, down.Start(t.Context()))
	ran(serve, v1beta1.PhaseRunning, all)
	assert.Equal(t, nodes(), nodesOf(world.Pods(t, serve.Namespace)))
	ran(complete, v1beta1.PhaseCompleted, all-1)
}

// spareNode returns a node without the operator and that of the node agents.
func spareNode(t *testing.T) cluster.Node {
	t.Helper()
	var managers []corev1.Pod
	for _, name := range []string{"jobs-manager", "daemon-manager"} {
		pods := &corev1.PodList{}
		require.NoError(t, world.Client.List(t.Context(), pods, client.InNamespace(install.Namespace), client.MatchingLabels{"app.kubernetes.io/name": name}))
		managers = append(managers, pods.Items...)
	}
	taken := nodesOf(managers)
	for _, n := range slices.Backward(world.Cluster.Nodes()) {
		if !slices.Contains(taken, n.Name()) {
			return n
		}
	}
	require.Fail(t, "managers run on all nodes")
	return cluster.Node{}
}

// crashNode crashes a node, and tells the cluster of it at once, which finds out by itself after 50 seconds. At the end of
// the test the node is there again with all that it ran.
func crashNode(t *testing.T, node cluster.Node) {
	t.Helper()
	require.NoError(t, node.Stop(t.Context()))
	t.Cleanup(func() { restore(context.WithoutCancel(t.Context()), t, node) })
	now := metav1.Now().UTC().Format(time.RFC3339)
	status, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": corev1.NodeReady, "status": corev1.ConditionUnknown, "reason": "NodeStatusUnknown", "message": "the story has crashed it",
		"lastHeartbeatTime": now, "lastTransitionTime": now,
	}}}})
	require.NoError(t, err)
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name()}}
	require.NoError(t, world.Client.Status().Patch(t.Context(), o, client.RawPatch(types.StrategicMergePatchType, status)))
	story.Reaches(t, world, o, "a taint", func(o *corev1.Node) error {
		return story.Want(slices.ContainsFunc(o.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Key == corev1.TaintNodeUnreachable && taint.Effect == corev1.TaintEffectNoExecute
		}), "taints are %v", o.Spec.Taints)
	})
}

// restore boots the node if nobody has, and waits until it does what it did.
func restore(ctx context.Context, t *testing.T, node cluster.Node) {
	t.Helper()
	if t.Failed() {
		if err := node.Start(ctx); err != nil {
			t.Log("boot what the story has crashed:", err)
		}
		return
	}
	await.Until(t, func(collect *assert.CollectT) { require.NoError(collect, settled(ctx, node.Name())) })
}

// settled returns what the node lacks: a NodeImage of its own, or pods that are ready.
func settled(ctx context.Context, node string) error {
	o, image, pods := &corev1.Node{}, &daemon.NodeImage{}, &corev1.PodList{}
	if err := world.Client.Get(ctx, client.ObjectKey{Name: node}, o); err != nil {
		return err
	}
	if err := world.Client.Get(ctx, client.ObjectKey{Name: node}, image); err != nil {
		return err
	}
	if err := world.Client.List(ctx, pods, client.InNamespace(install.Namespace)); err != nil {
		return err
	}
	return story.Want(
		slices.ContainsFunc(image.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == o.UID }) &&
			!slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return !story.IsReady(&pod) }),
		"pods are %v", story.Identities(pods.Items))
}
