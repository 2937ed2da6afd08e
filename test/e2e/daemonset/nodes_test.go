package daemonset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/install"
	"github.com/flotilla-project/flotilla/test/story"
)

// Stories in this file that taint or stop a node do not run in parallel with others.

// spareNode returns a node on which the operator does not run.
func spareNode(t *testing.T) cluster.Node {
	t.Helper()
	pods := &corev1.PodList{}
	require.NoError(t, world.Client.List(t.Context(), pods, client.InNamespace(install.Namespace),
		client.MatchingLabels{"app.kubernetes.io/name": "daemonset-manager"}))
	taken := nodesOf(pods.Items)
	for _, n := range slices.Backward(world.Cluster.Nodes()) {
		if !slices.Contains(taken, n.Name()) {
			return n
		}
	}
	require.Fail(t, "the operator runs on all nodes")
	return cluster.Node{}
}

// taint adds a taint to the node, or removes it.
func taint(t *testing.T, node string, effect corev1.TaintEffect, on bool) {
	t.Helper()
	change := "example.io/busy=yes:" + string(effect)
	if !on {
		change += "-"
	}
	out, err := world.Kubectl(t, "", "taint", "node", node, change)
	require.NoError(t, err, out)
}

func TestTaintsDecideWhichNodesRunAPod(t *testing.T) {
	set, node := newSet(world.Namespace(t)), spareNode(t).Name()
	t.Cleanup(func() {
		patchNode(t, node, map[string]any{"spec": map[string]any{"taints": nil}})
	})
	givenSet(t, set)

	taint(t, node, corev1.TaintEffectNoSchedule, true)
	story.Reaches(t, world, set, "a pod on a node that should not run one", func(s *v1beta1.DaemonSet) error {
		return story.Want(s.Status.NumberMisscheduled == 1, "status is %+v", s.Status)
	})
	require.NoError(t, world.Client.Delete(t.Context(), podOn(t, set, node)))
	settlesOn(t, set, others(node)...)
	taint(t, node, corev1.TaintEffectNoSchedule, false)
	settlesOn(t, set, nodes()...)

	taint(t, node, corev1.TaintEffectNoExecute, true)
	settlesOn(t, set, others(node)...)
	edit(t, set, func(s *v1beta1.DaemonSet) {
		s.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "example.io/busy", Operator: corev1.TolerationOpExists}}
	})
	settlesOn(t, set, nodes()...)
	taint(t, node, corev1.TaintEffectNoExecute, false)
}

func TestCordonedNodesRunPods(t *testing.T) {
	t.Parallel()
	set, node := newSet(world.Namespace(t)), nodes()[0]
	out, err := world.Kubectl(t, "", "cordon", node)
	require.NoError(t, err, out)
	t.Cleanup(func() {
		patchNode(t, node, map[string]any{"spec": map[string]any{"unschedulable": nil}})
	})
	givenSet(t, set)
	assert.Equal(t, nodes(), nodesOf(podsOf(t, set)))
	gone := podOn(t, set, node)
	require.NoError(t, world.Client.Delete(t.Context(), gone))
	story.Gone(t, world, gone)
	settlesOn(t, set, nodes()...)
}

// A node that is deleted no longer counts. One that joins gets a pod.
func TestANodeIsDeletedAndComesBack(t *testing.T) {
	set, node := newSet(world.Namespace(t)), spareNode(t)
	givenSet(t, set)
	stop(t, node)
	require.NoError(t, world.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name()}}))
	left := len(nodes()) - 1
	story.Reaches(t, world, set, "a count without the node", func(s *v1beta1.DaemonSet) error {
		return story.Want(int(s.Status.DesiredNumberScheduled) == left && int(s.Status.NumberAvailable) == left, "status is %+v", s.Status)
	})
	require.NoError(t, node.Start(t.Context()))
	settlesOn(t, set, nodes()...)
}

// A node that fails in mid-rollout uses up what may be unavailable, unless the policy for unready nodes leaves it out.
// When it comes back it gets its update.
func TestANodeFailsInMidRollout(t *testing.T) {
	set, node := newSet(world.Namespace(t)), spareNode(t)
	givenSet(t, set)
	n := len(nodes())
	rolls(t, set, image("v2"), partition(int32(n-1)))
	updated(t, set, 1)
	stop(t, node)
	story.Reaches(t, world, set, "a node that is not Ready, and tainted", func(s *v1beta1.DaemonSet) error {
		return story.Want(s.Status.NumberUnreadyNodes == 1 && s.Status.NumberMisscheduled == 1, "status is %+v", s.Status)
	})
	edit(t, set, partition(0))
	story.Reaches(t, world, set, "a wait for the node", func(s *v1beta1.DaemonSet) error {
		c := story.Condition(s, "Ready")
		return story.Want(c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "not available yet: "+node.Name()), "condition Ready is %+v", c)
	})
	assert.EqualValues(t, 0, set.Status.NumberSkippedNodes)

	rolls(t, set, rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.UnreadyNodePolicy = v1beta1.SkipUnreadyNodes }))
	updated(t, set, n-1)
	assert.EqualValues(t, 1, set.Status.NumberSkippedNodes)

	require.NoError(t, node.Start(t.Context()))
	updated(t, set, n)
	assert.Equal(t, nodes(), nodesOf(podsOf(t, set)))
}

// stop crashes the node. It is booted again at the end of the test if it was not before.
func stop(t *testing.T, node cluster.Node) {
	t.Helper()
	require.NoError(t, node.Stop(t.Context()))
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if err := node.Start(context.WithoutCancel(t.Context())); err != nil {
			t.Log(fmt.Errorf("boot what the story has stopped: %w", err))
		}
	})
}
