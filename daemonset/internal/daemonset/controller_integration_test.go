package daemonset_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// running is a set that has its pods on all nodes.
func running(t *testing.T, options simnodes.Options, changes ...change) (client.Client, *v1beta1.DaemonSet) {
	t.Helper()
	givenNodes(t, options)
	c := env.Client(t)
	set := newSet(env.Namespace(t), changes...)
	startController(t, env, set.Namespace)
	require.NoError(t, c.Create(t.Context(), set))
	settles(t, c, set, nodeCount, nodeCount)
	return c, set
}

func TestEveryNodeGetsAPod(t *testing.T) {
	_, set := running(t, simnodes.Options{})
	pods := env.Pods(t, set.Namespace)
	assert.Equal(t, map[string]string{"sim-0": "app:1", "sim-1": "app:1", "sim-2": "app:1"}, images(pods))
	for i := range pods {
		assert.True(t, metav1.IsControlledBy(&pods[i], set))
		assert.Equal(t, "apps.kruise.io/v1beta1", pods[i].OwnerReferences[0].APIVersion)
		assert.Equal(t, set.Status.UpdateRevision, revisionOf(&pods[i]))
		assert.NotContains(t, revisionOf(&pods[i]), "-", "the hash alone, as the built-in kind writes it")
		assert.Equal(t, "web-", pods[i].GenerateName)
		assert.Equal(t, corev1.PullIfNotPresent, pods[i].Spec.Containers[0].ImagePullPolicy, "the server's default")
		tolerated := map[string]bool{}
		for _, o := range pods[i].Spec.Tolerations {
			tolerated[o.Key] = o.TolerationSeconds == nil && o.Operator == corev1.TolerationOpExists
		}
		assert.Subset(t, slices.Collect(maps.Keys(tolerated)), []string{
			corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure,
			corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable,
		})
	}
	var revisions appsv1.ControllerRevisionList
	require.NoError(t, env.Client(t).List(t.Context(), &revisions, client.InNamespace(set.Namespace)))
	require.Len(t, revisions.Items, 1)
	assert.Equal(t, "web-"+set.Status.UpdateRevision, revisions.Items[0].Name)
	assert.Equal(t, map[string]string{"app": "web", contract.RevisionLabel: set.Status.UpdateRevision}, revisions.Items[0].Labels)
	assert.Equal(t, v1beta1.ReasonComplete, progressing(set))
}

func TestLongNamesMakeLegalPods(t *testing.T) {
	_, set := running(t, simnodes.Options{}, func(s *v1beta1.DaemonSet) { s.Name = strings.Repeat("a", 250) })
	assert.Len(t, env.Pods(t, set.Namespace)[0].Name, 63)
}

func TestPodsFollowTheirNodes(t *testing.T) {
	blue := func(int) map[string]string { return map[string]string{"color": "blue"} }
	c, set := running(t, simnodes.Options{Labels: blue})
	onTwo := map[string]string{"sim-0": "app:1", "sim-2": "app:1"}
	label := func(value string) change {
		return func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = map[string]string{"color": value} }
	}
	testenv.Edit(t, c, set, label("blue"))
	settles(t, c, set, nodeCount, nodeCount)
	t.Run("another label", func(t *testing.T) {
		editNode(t, func(n *corev1.Node) { n.Labels["color"] = "green" })
		settles(t, c, set, 2, 2)
		assert.Equal(t, onTwo, images(env.Pods(t, set.Namespace)))
	})
	t.Run("the label taken back", func(t *testing.T) { settles(t, c, set, nodeCount, nodeCount) })
	t.Run("a label that no node has", func(t *testing.T) {
		testenv.Edit(t, c, set, label("green"))
		settles(t, c, set, 0, 0)
		assert.Equal(t, v1beta1.ReasonNoEligibleNodes, progressing(set))
	})
	testenv.Edit(t, c, set, func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.NodeSelector = nil })
	settles(t, c, set, nodeCount, nodeCount)
	before := testenv.Identities(env.Pods(t, set.Namespace))
	taint := func(effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "example.com/busy", Effect: effect})
		}
	}
	t.Run("NoSchedule", func(t *testing.T) {
		editNode(t, taint(corev1.TaintEffectNoSchedule))
		eventually(t, c, set, func(collect *assert.CollectT) {
			assert.Equal(collect, []int32{2, 1}, []int32{set.Status.DesiredNumberScheduled, set.Status.NumberMisscheduled})
		})
		assert.Equal(t, before, testenv.Identities(env.Pods(t, set.Namespace)), "what runs there stays")
	})
	t.Run("NoExecute", func(t *testing.T) {
		editNode(t, taint(corev1.TaintEffectNoExecute))
		settles(t, c, set, 2, 2)
		assert.Equal(t, onTwo, images(env.Pods(t, set.Namespace)))
	})
	t.Run("no taint", func(t *testing.T) { settles(t, c, set, nodeCount, nodeCount) })
	t.Run("cordoned", func(t *testing.T) {
		editNode(t, func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
		})
		testenv.Edit(t, c, set, func(s *v1beta1.DaemonSet) { s.Spec.MinReadySeconds = 1 })
		settles(t, c, set, nodeCount, nodeCount)
	})
}

// assertInService replays what was seen of the pods and demands that enough nodes have an available one.
func assertInService(t *testing.T, history interface {
	Replay(*testing.T, func([]*corev1.Pod))
}, least, most int) {
	t.Helper()
	history.Replay(t, func(pods []*corev1.Pod) {
		available, perNode := map[string]bool{}, map[string]int{}
		for _, o := range pods {
			if o.DeletionTimestamp != nil {
				continue
			}
			perNode[o.Spec.NodeName]++
			for _, c := range o.Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					available[o.Spec.NodeName] = true
				}
			}
		}
		delete(perNode, "") // not scheduled yet
		assert.GreaterOrEqual(t, len(available), least)
		for node, n := range perNode {
			assert.LessOrEqual(t, n, most, node)
		}
	})
}

func TestStandardUpdatesReplacePods(t *testing.T) {
	c, set := running(t, simnodes.Options{ReadyDelay: 50 * time.Millisecond})
	before, history := testenv.Identities(env.Pods(t, set.Namespace)), faults.Record(t, env, set.Namespace)
	testenv.Edit(t, c, set, image("app:2"))
	settles(t, c, set, nodeCount, nodeCount)
	assert.Equal(t, map[string]string{"sim-0": "app:2", "sim-1": "app:2", "sim-2": "app:2"}, images(env.Pods(t, set.Namespace)))
	for _, pod := range testenv.Identities(env.Pods(t, set.Namespace)) {
		assert.NotContains(t, before, pod)
	}
	assertInService(t, history, nodeCount-1, 1)
}

func TestSurgesKeepEveryNodeInService(t *testing.T) {
	c, set := running(t, simnodes.Options{ReadyDelay: 50 * time.Millisecond}, surge, func(s *v1beta1.DaemonSet) { s.Spec.MinReadySeconds = 1 })
	history := faults.Record(t, env, set.Namespace)
	testenv.Edit(t, c, set, image("app:2"))
	settles(t, c, set, nodeCount, nodeCount)
	assert.Equal(t, map[string]string{"sim-0": "app:2", "sim-1": "app:2", "sim-2": "app:2"}, images(env.Pods(t, set.Namespace)))
	assertInService(t, history, nodeCount, 2)
}

func TestUpdatesInPlaceKeepPods(t *testing.T) {
	c, set := running(t, simnodes.Options{}, inPlace)
	before, history := testenv.Identities(env.Pods(t, set.Namespace)), faults.Record(t, env, set.Namespace)
	testenv.Edit(t, c, set, image("app:2"))
	settles(t, c, set, nodeCount, nodeCount)
	pods := env.Pods(t, set.Namespace)
	assert.Equal(t, before, testenv.Identities(pods))
	for i := range pods {
		assert.Equal(t, "app:2", pods[i].Spec.Containers[0].Image)
		assert.Equal(t, set.Status.UpdateRevision, revisionOf(&pods[i]))
		assert.Contains(t, pods[i].Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: contract.InPlaceUpdateReady})
		assert.Contains(t, pods[i].Annotations[contract.InPlaceUpdateStateAnnotation], `"revision":"`+set.Status.UpdateRevision+`"`)
	}
	assertInService(t, history, nodeCount-1, 1)

	testenv.Edit(t, c, set, argument("new"))
	settles(t, c, set, nodeCount, nodeCount)
	for _, pod := range testenv.Identities(env.Pods(t, set.Namespace)) {
		assert.NotContains(t, before, pod, "an argument needs a new pod")
	}
}

func TestPartitionAndSelectorHoldNodesBack(t *testing.T) {
	c, set := running(t, simnodes.Options{}, inPlace)
	testenv.Edit(t, c, set, func(s *v1beta1.DaemonSet) { changed(image("app:2"), keep(2))(s) })
	settles(t, c, set, nodeCount, 1)
	assert.Equal(t, map[string]string{"sim-0": "app:1", "sim-1": "app:1", "sim-2": "app:2"}, images(env.Pods(t, set.Namespace)), "the last name first")
	assert.Equal(t, v1beta1.ReasonPartitionReached, progressing(set))

	testenv.Edit(t, c, set, func(s *v1beta1.DaemonSet) {
		changed(keep(0), rolling(func(r *v1beta1.RollingUpdateDaemonSet) {
			r.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: "sim-0"}}
		}))(s)
	})
	settles(t, c, set, nodeCount, 2)
	assert.Equal(t, map[string]string{"sim-0": "app:2", "sim-1": "app:1", "sim-2": "app:2"}, images(env.Pods(t, set.Namespace)))

	testenv.Edit(t, c, set, rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.UnselectedNodePolicy = v1beta1.RevertUnselectedNodes }))
	settles(t, c, set, nodeCount, 1)
	assert.Equal(t, map[string]string{"sim-0": "app:2", "sim-1": "app:1", "sim-2": "app:1"}, images(env.Pods(t, set.Namespace)), "and back")

	testenv.Edit(t, c, set, rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.Selector = nil }))
	settles(t, c, set, nodeCount, nodeCount)
}

func TestOnDeleteWaitsForTheUser(t *testing.T) {
	c, set := running(t, simnodes.Options{}, func(s *v1beta1.DaemonSet) {
		s.Spec.UpdateStrategy = v1beta1.DaemonSetUpdateStrategy{Type: v1beta1.OnDeleteStrategyType}
	})
	testenv.Edit(t, c, set, image("app:2"))
	settles(t, c, set, nodeCount, 0)
	assert.Equal(t, v1beta1.ReasonOnDelete, progressing(set))
	require.NoError(t, c.Delete(t.Context(), &env.Pods(t, set.Namespace)[0]))
	settles(t, c, set, nodeCount, 1)
}

func TestPausedUpdatesWait(t *testing.T) {
	c, set := running(t, simnodes.Options{})
	pause := func(on bool) change {
		return rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.Paused = &on })
	}
	testenv.Edit(t, c, set, func(s *v1beta1.DaemonSet) { changed(pause(true), image("app:2"))(s) })
	settles(t, c, set, nodeCount, 0)
	assert.Equal(t, v1beta1.ReasonPaused, progressing(set))
	testenv.Edit(t, c, set, pause(false))
	settles(t, c, set, nodeCount, nodeCount)
}

// A hook lets one pod at a time wait, and goes on when the user has taken the label off.
func TestPreDeleteHoldsPods(t *testing.T) {
	c, set := running(t, simnodes.Options{}, func(s *v1beta1.DaemonSet) {
		s.Spec.Template.Labels["example.com/hold"] = "true"
		s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: &workload.LifecycleHook{LabelsHandler: map[string]string{"example.com/hold": "true"}}}
	})
	testenv.Edit(t, c, set, image("app:2"))
	for range nodeCount {
		var held []corev1.Pod
		await.Until(t, func(collect *assert.CollectT) {
			held = slices.DeleteFunc(env.Pods(t, set.Namespace), func(o corev1.Pod) bool {
				return o.Labels[contract.LifecycleStateLabel] != contract.LifecyclePreparingDelete || o.DeletionTimestamp != nil
			})
			assert.Len(collect, held, 1)
		})
		assert.NotEmpty(t, held[0].Annotations[contract.LifecycleTimestampAnnotation])
		eventually(t, c, set, func(collect *assert.CollectT) {
			assert.Equal(collect, v1beta1.ReasonBlockedByPreDeleteHook, progressing(set))
		})
		assert.Len(t, env.Pods(t, set.Namespace), nodeCount)
		require.NoError(t, c.Patch(t.Context(), &held[0], client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"example.com/hold":null}}}`))))
		await.Until(t, func(collect *assert.CollectT) {
			assert.True(collect, isGone(t, c, &held[0]))
		})
	}
	settles(t, c, set, nodeCount, nodeCount)
}

func isGone(t *testing.T, c client.Client, o *corev1.Pod) bool {
	t.Helper()
	return client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(o), &corev1.Pod{})) == nil &&
		!slices.ContainsFunc(env.Pods(t, o.Namespace), func(p corev1.Pod) bool { return p.UID == o.UID })
}

func TestPartitionedScalingHoldsNodesBack(t *testing.T) {
	givenNodes(t, simnodes.Options{})
	c := env.Client(t)
	set := newSet(env.Namespace(t), keep(2), func(s *v1beta1.DaemonSet) {
		s.Spec.ScaleStrategy = &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}
	})
	startController(t, env, set.Namespace)
	require.NoError(t, c.Create(t.Context(), set))
	count := func(n int32) {
		eventually(t, c, set, func(collect *assert.CollectT) {
			assert.Equal(collect, []int32{nodeCount, n, n}, []int32{set.Status.DesiredNumberScheduled, set.Status.CurrentNumberScheduled, set.Status.NumberAvailable})
		})
		assert.Len(t, env.Pods(t, set.Namespace), int(n))
	}
	count(1)
	testenv.Edit(t, c, set, rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.Partition = new(intstr.FromString("34%")) }))
	count(2)
	testenv.Edit(t, c, set, keep(0))
	count(3)
}

// A node that has lost its pod while no operator ran gets it again.
func TestPartitionedScalingKnowsAfterARestartWhichNodesHadAPod(t *testing.T) {
	givenNodes(t, simnodes.Options{})
	c := env.Client(t)
	set := newSet(env.Namespace(t), keep(2), func(s *v1beta1.DaemonSet) {
		s.Spec.ScaleStrategy = &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}
	})
	hasOne := func(collect *assert.CollectT) {
		assert.Equal(collect, []int32{nodeCount, 1, 1}, []int32{set.Status.DesiredNumberScheduled, set.Status.CurrentNumberScheduled, set.Status.NumberAvailable})
	}
	require.NoError(t, c.Create(t.Context(), set))
	require.True(t, t.Run("before", func(t *testing.T) {
		startController(t, env, set.Namespace)
		eventually(t, c, set, hasOne)
	}))
	testenv.Edit(t, c, set, keep(nodeCount)) // nobody gets a first pod any more
	lost := env.Pods(t, set.Namespace)[0]
	require.NoError(t, c.Delete(t.Context(), &lost))
	await.Until(t, func(collect *assert.CollectT) { assert.True(collect, isGone(t, c, &lost)) })
	startController(t, env, set.Namespace)
	eventually(t, c, set, hasOne)
	assert.Equal(t, lost.Spec.NodeName, env.Pods(t, set.Namespace)[0].Spec.NodeName)
}
