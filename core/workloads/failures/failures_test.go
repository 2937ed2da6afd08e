package failures

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/gen"
)

func namedSet(uid types.UID) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid}}
}

func nodeOf(pod *corev1.Pod) string { return pod.Spec.NodeName }

func podOn(node string, uid types.UID, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
}

func TestPausesBetweenFailuresGrow(t *testing.T) {
	m, set, now := &Memory{}, namedSet("a"), gen.Epoch()
	pauses := func(revision string, pods ...*corev1.Pod) map[string]time.Duration {
		all := map[string]time.Duration{}
		for node, until := range m.RetryAt(set, revision, pods, nodeOf, now) {
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
	assert.Equal(t, map[string]time.Time{}, m.RetryAt(namedSet("b"), "r2", []*corev1.Pod{failed("new")}, nodeOf, now), "another set of the name")
	assert.Equal(t, none, pauses("r2", failed("5")))
	assert.Equal(t, map[string]time.Duration{"n1": time.Second}, pauses("r2", failed("6")))
	m.Forget(client.ObjectKeyFromObject(set))
	assert.Equal(t, none, pauses("r2", failed("6")), "forgotten")
}
