package daemonset_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/plan"
)

// passes are those of all controllers of this process.
func passes(t *testing.T) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	total := 0.0
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_total" {
			for _, m := range family.GetMetric() {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return int(total)
}

// What kubelets and others write of nodes again and again makes no pass. A taint that comes after it shows that all of it
// was seen.
func TestHeartbeatsOfNodesMakeNoPass(t *testing.T) {
	c, set := running(t, simnodes.Options{})
	const rounds = 20
	before := passes(t)
	for round := range rounds {
		nodes := &corev1.NodeList{}
		require.NoError(t, c.List(t.Context(), nodes))
		for i := range nodes.Items {
			node := &nodes.Items[i]
			old := node.DeepCopy()
			node.Status.Images = []corev1.ContainerImage{{Names: []string{"noise"}, SizeBytes: int64(round)}}
			for j := range node.Status.Conditions {
				node.Status.Conditions[j].LastHeartbeatTime = metav1.Unix(int64(1_700_000_000+round), 0)
			}
			require.NoError(t, c.Status().Patch(t.Context(), node, client.MergeFrom(old)))
		}
	}
	editNode(t, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "busy", Effect: corev1.TaintEffectNoSchedule})
	})
	eventually(t, c, set, func(collect *assert.CollectT) { assert.EqualValues(collect, 1, set.Status.NumberMisscheduled) })
	assert.Less(t, passes(t)-before, rounds, "fewer than one for each round")
}

// A pod that does not go from a node that must not run it uses up maxUnavailable, unless such nodes are pruned.
func TestPrunedNodesHoldUpNoUpdate(t *testing.T) {
	for name, prune := range map[string]bool{"not pruned": false, "pruned": true} {
		t.Run(name, func(t *testing.T) {
			nodes := givenNodes(t, simnodes.Options{})
			c, set := env.Client(t), newSet(env.Namespace(t))
			startController(t, env, set.Namespace, func(g *plan.FeatureGates) { g.PruneIneligibleNodes = prune })
			require.NoError(t, c.Create(t.Context(), set))
			settles(t, c, set, nodeCount, nodeCount)

			nodes.Pause("sim-1")
			t.Cleanup(func() { nodes.Resume("sim-1") })
			editNode(t, func(n *corev1.Node) {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "broken", Effect: corev1.TaintEffectNoExecute})
			})
			eventually(t, c, set, func(collect *assert.CollectT) {
				assert.Equal(collect, []int32{nodeCount - 1, 1}, []int32{set.Status.DesiredNumberScheduled, set.Status.NumberMisscheduled})
				assert.Len(collect, active(env.Pods(t, set.Namespace)), nodeCount-1)
			})

			testenv.Edit(t, c, set, image("app:2"))
			if prune {
				eventually(t, c, set, func(collect *assert.CollectT) {
					assert.Equal(collect, []int32{nodeCount - 1, nodeCount - 1}, []int32{set.Status.UpdatedNumberScheduled, set.Status.NumberAvailable})
				})
				return
			}
			eventually(t, c, set, func(collect *assert.CollectT) {
				ready := conditions.Get(set.Status.Conditions, conditions.Ready)
				assert.Equal(collect, corev1.ConditionFalse, ready.Status)
				assert.Contains(collect, ready.Message, "not available yet: sim-1")
			})
			assert.Zero(t, set.Status.UpdatedNumberScheduled)
		})
	}
}

// Without the scheduler pods are created on their node, and no other scheduler takes them.
func TestPodsAreAssignedWithoutTheScheduler(t *testing.T) {
	givenNodes(t, simnodes.Options{})
	c, set := env.Client(t), newSet(env.Namespace(t))
	startController(t, env, set.Namespace, func(g *plan.FeatureGates) { g.AssignDirectly = true })
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set, nodeCount, nodeCount)
	for _, o := range env.Pods(t, set.Namespace) {
		assert.Equal(t, "kubernetes.io/daemonset-controller", o.Spec.SchedulerName)
		assert.Nil(t, o.Spec.Affinity)
		assert.NotContains(t, o.Annotations, contract.AutoscalerDaemonSetPodAnnotation, "where nobody asks for it")
	}
}

func TestTheAutoscalerIsToldOfPods(t *testing.T) {
	givenNodes(t, simnodes.Options{})
	c, set := env.Client(t), newSet(env.Namespace(t), inPlace)
	startController(t, env, set.Namespace, func(g *plan.FeatureGates) { g.AutoscalerAnnotation = true })
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set, nodeCount, nodeCount)
	before := testenv.Identities(env.Pods(t, set.Namespace))
	testenv.Edit(t, c, set, image("app:2"))
	settles(t, c, set, nodeCount, nodeCount)
	pods := env.Pods(t, set.Namespace)
	assert.Equal(t, before, testenv.Identities(pods), "the annotation is in no pod's way in place")
	for i := range pods {
		assert.Equal(t, "true", pods[i].Annotations["cluster-autoscaler.kubernetes.io/daemonset-pod"])
	}
}
