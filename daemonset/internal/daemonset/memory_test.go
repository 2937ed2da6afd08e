package daemonset

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

func named(uid types.UID) *v1beta1.DaemonSet {
	return &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid}}
}

func podOn(node string, uid types.UID, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
}

func TestPausesBetweenFailuresGrow(t *testing.T) {
	m, set, now := &memory{}, named("a"), gen.Epoch()
	pauses := func(revision string, pods ...*corev1.Pod) map[string]time.Duration {
		all := map[string]time.Duration{}
		for node, until := range m.retryFailedAt(set, revision, pods, now) {
			all[node] = until.Sub(now)
		}
		return all
	}
	failed := func(uid types.UID) *corev1.Pod { return podOn("n1", uid, corev1.PodFailed) }
	none := map[string]time.Duration{}

	assert.Equal(t, none, pauses("r1", failed("1"), podOn("n2", "x", corev1.PodRunning)), "the first is replaced at once")
	assert.Equal(t, none, pauses("r1", failed("1")), "and still is in the next pass")
	assert.Equal(t, map[string]time.Duration{"n1": time.Second}, pauses("r1", failed("2")))
	now = now.Add(time.Second)
	assert.Equal(t, none, pauses("r1", failed("2")))
	assert.Equal(t, map[string]time.Duration{"n1": 2 * time.Second}, pauses("r1", failed("3")))
	assert.Equal(t, none, pauses("r1", podOn("n2", "4", corev1.PodFailed)), "another node")
	assert.Equal(t, none, pauses("r2", failed("3")), "another revision begins anew")

	for uid := range 20 {
		for node, pause := range pauses("r2", failed(types.UID(rune('a'+uid)))) {
			assert.LessOrEqual(t, pause, longestPause, node)
			now = now.Add(pause)
		}
		assert.Equal(t, none, pauses("r2", failed(types.UID(rune('a'+uid)))))
	}
	assert.Equal(t, map[string]time.Duration{"n1": longestPause}, pauses("r2", failed("z")))
	now = now.Add(3 * longestPause)
	assert.Equal(t, none, pauses("r2", podOn("n2", "4", corev1.PodRunning)))
	assert.Equal(t, none, pauses("r2", failed("zz")), "long ago")
	assert.Equal(t, map[string]time.Duration{"n1": time.Second}, pauses("r2", failed("zzz")))
}

func TestNodesThatHadAPodAreRemembered(t *testing.T) {
	m, nodes := &memory{}, []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "n2"}}}
	remember := func(set *v1beta1.DaemonSet, nodes []*corev1.Node, pods ...*corev1.Pod) map[string]bool {
		return m.remember(set, "r", pods, nodes)
	}
	set := named("a")
	assert.Empty(t, remember(set, nodes))
	assert.Equal(t, map[string]bool{"n1": true}, remember(set, nodes, podOn("n1", "1", corev1.PodRunning), podOn("gone", "2", corev1.PodRunning)))
	assert.Equal(t, map[string]bool{"n1": true}, remember(set, nodes), "the pod is gone")
	assert.Empty(t, remember(set, nodes[1:]), "and the node, too")
	assert.Empty(t, remember(set, nodes), "another one of the name never had one")

	remember(set, nodes, podOn("n1", "1", corev1.PodRunning))
	assert.Empty(t, remember(named("b"), nodes), "another set of the name")
	remember(named("b"), nodes, podOn("n1", "1", corev1.PodRunning))
	m.Forget(client.ObjectKeyFromObject(set))
	assert.Empty(t, m.sets)
}
