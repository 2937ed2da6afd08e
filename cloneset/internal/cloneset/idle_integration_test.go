package cloneset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/simnodes"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// settledSets is how many sets the operator of these tests finds, each with podsOfEach pods.
const settledSets, podsOfEach = 20, 3

// registry has the metrics of controller-runtime, also when a test gives its operators one of their own.
var registry = metrics.Registry

// metric adds up the metric over all controllers of this process.
func metric(t testing.TB, name string) int {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	total := 0.0
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return int(total)
}

func passes(t testing.TB) int {
	t.Helper()
	return metric(t, "controller_runtime_reconcile_total")
}

// underWay are the passes that have begun and those that wait in a queue. Those of an operator that a test
// has killed are among them for ever.
func underWay(t testing.TB) int {
	t.Helper()
	return metric(t, "workqueue_depth") + metric(t, "controller_runtime_active_workers")
}

// numbered is one of several sets of a namespace, whose pods are its own.
func numbered(namespace string, i int, replicas int32) *v1beta1.CloneSet {
	set := newSet(namespace, replicas, v1beta1.InPlaceIfPossible, 1)
	set.Name = fmt.Sprintf("web-%d", i)
	set.Spec.Selector.MatchLabels = map[string]string{"app": set.Name}
	set.Spec.Template.Labels["app"] = set.Name
	return set
}

// givenSettledSets makes sets, which a controller of their own brings to where they want to be before it ends.
func givenSettledSets(t *testing.T) (namespace string) {
	t.Helper()
	givenNodes(t, simnodes.Options{Bind: true})
	namespace = env.Namespace(t)
	t.Run("given", func(t *testing.T) {
		startController(t, namespace)
		c := env.Client(t)
		for i := range settledSets {
			require.NoError(t, c.Create(t.Context(), numbered(namespace, i, podsOfEach)))
		}
		for i := range settledSets {
			settles(t, c, numbered(namespace, i, podsOfEach))
		}
	})
	return namespace
}

// started starts a controller, and waits until it has looked at every set and has nothing more to look at.
// It returns how many passes there were before.
func started(t *testing.T, namespace string) (before int) {
	t.Helper()
	before, others := passes(t), underWay(t)
	startController(t, namespace)
	await.Until(t, func(collect *assert.CollectT) {
		assert.GreaterOrEqual(collect, passes(t)-before, settledSets)
		assert.LessOrEqual(collect, underWay(t), others)
	})
	return before
}

// 1026, 1027: at the start the queue was full of passes for nothing. A start looks at every settled set
// at most twice, and writes nothing.
func TestAStartLooksAtEachSetAtMostTwice(t *testing.T) {
	namespace := givenSettledSets(t)
	audit := env.Audit(t)
	before := started(t, namespace)
	assert.LessOrEqual(t, passes(t)-before, 2*settledSets)
	assert.Empty(t, audit.Writes(t, userAgent))
}

// 1089: an idle manager was busy. What kubelets write again and again, and what goes on among pods of
// others, makes no pass and no request. A set that is made afterwards shows that all of it was seen.
func TestTheNoiseOfOthersMakesNoPass(t *testing.T) {
	namespace := givenSettledSets(t)
	c := env.Client(t)
	started(t, namespace)

	audit, before := env.Audit(t), passes(t)
	makeNoise(t, c, namespace)
	last := numbered(namespace, settledSets, 1)
	require.NoError(t, c.Create(t.Context(), last))
	settles(t, c, last)
	assert.Less(t, passes(t)-before, settledSets, "those of the last set are fewer than one for each of the others")
	for _, r := range audit.Requests(t, userAgent) {
		assert.True(t, r.Verb == "watch" || strings.HasPrefix(r.Object.Name, last.Name), "%s %s", r, r.Object.Name)
	}
}

// makeNoise writes what does not concern a set: every pod's status twice, pods of others, and nodes.
func makeNoise(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	pods := &corev1.PodList{}
	require.NoError(t, c.List(t.Context(), pods, client.InNamespace(namespace)))
	require.Len(t, pods.Items, settledSets*podsOfEach)
	for round := range 2 {
		for i := range pods.Items {
			beat := strategic(`{"status":{"conditions":[{"type":"example.io/Beat","status":"True","reason":"Round%d"}]}}`, round)
			require.NoError(t, c.Status().Patch(t.Context(), &pods.Items[i], beat))
		}
		other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "other-", Namespace: namespace, Labels: map[string]string{"app": "other"}}, Spec: pods.Items[0].Spec}
		other.Spec.NodeName = ""
		require.NoError(t, c.Create(t.Context(), other))
		require.NoError(t, c.Patch(t.Context(), other, strategic(`{"metadata":{"annotations":{"example.io/round":"%d"}}}`, round)))
		require.NoError(t, c.Delete(t.Context(), other))
	}
	nodes := &corev1.NodeList{}
	require.NoError(t, c.List(t.Context(), nodes))
	for i := range nodes.Items {
		require.NoError(t, c.Patch(t.Context(), &nodes.Items[i], strategic(`{"metadata":{"labels":{"example.io/round":"%d"}}}`, 1)))
	}
}

func strategic(format string, args ...any) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil, format, args...))
}
