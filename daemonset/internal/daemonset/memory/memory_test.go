package memory

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

func named(uid types.UID) *v1beta1.DaemonSet {
	return &v1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid}}
}

func podOn(node string, uid types.UID, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
}

func nodesNamed(names ...string) (nodes []*corev1.Node) {
	for _, name := range names {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}})
	}
	return nodes
}

func TestNodesThatHadAPodAreRemembered(t *testing.T) {
	m, nodes := &Memory{}, nodesNamed("n1", "n2")
	remember := func(set *v1beta1.DaemonSet, nodes []*corev1.Node, pods ...*corev1.Pod) map[string]bool {
		return m.Recall(Seen{Set: set, Revision: "r", Pods: pods, Nodes: nodes, FirstPodsWait: true}).HadPod
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
	assert.Empty(t, remember(named("b"), nodes), "the set has gone")
}

// An operator that starts anew knows by the status how many nodes had a pod.
func TestNodesThatHadAPodAreKnownAfterARestart(t *testing.T) {
	cases := []struct {
		name           string
		current, nodes int32 // by the status
		present        string
		with           string // nodes with a pod
		want           []string
	}{
		{"all have theirs", 2, 4, "n1 n2 n3 n4", "n1 n2", nil},
		{"one was lost", 2, 4, "n1 n2 n3 n4", "n2", []string{"n1"}},
		{"all were lost", 2, 4, "n4 n3 n2 n1", "", []string{"n1", "n2"}},
		{"a node is gone with its pod", 2, 4, "n2 n3 n4", "n2", nil},
		{"a node has joined", 2, 3, "n1 n2 n3 n4", "n1 n2", nil},
		{"a node has joined and a pod was lost", 2, 3, "n1 n2 n3 n4", "n1", []string{"n2"}},
		{"nobody has counted yet", 0, 0, "n1 n2", "", nil},
		{"more than were counted", 1, 4, "n1 n2 n3 n4", "n1 n2", nil},
		{"nodes that should run none", 2, 4, "n1 n2 tainted n3 n4", "n2", []string{"n1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set, nodes := named("a"), nodesNamed(strings.Fields(c.present)...)
			set.Status.CurrentNumberScheduled, set.Status.DesiredNumberScheduled = c.current, c.nodes
			for _, n := range nodes {
				if n.Name == "tainted" {
					n.Spec.Taints = []corev1.Taint{{Key: "busy", Effect: corev1.TaintEffectNoSchedule}}
				}
			}
			want, pods := map[string]bool{}, []*corev1.Pod(nil)
			for name := range strings.FieldsSeq(c.with) {
				want[name], pods = true, append(pods, podOn(name, types.UID(name), corev1.PodRunning))
			}
			for _, name := range c.want {
				want[name] = true
			}
			m := &Memory{}
			assert.Empty(t, m.Recall(Seen{Set: set, Nodes: nodes}).HadPod, "where it does not matter")
			assert.Equal(t, want, m.Recall(Seen{Set: set, Pods: pods, Nodes: nodes, FirstPodsWait: true}).HadPod)
			assert.Equal(t, want, m.Recall(Seen{Set: set, Nodes: nodes, FirstPodsWait: true}).HadPod, "once it looks it knows for itself")
		})
	}
}

// The condition of a node that dies goes from False to Unknown, and tells of that moment.
func TestNodesAreNotReadySinceTheyWereReadyLast(t *testing.T) {
	m, set, start := &Memory{}, named("a"), time.Unix(1_700_000_000, 0)
	since := func(uid types.UID, status corev1.ConditionStatus, at time.Time) map[string]time.Time {
		node := nodesNamed("n1")[0]
		node.UID = uid
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(at)}}
		return m.Recall(Seen{Set: set, Nodes: []*corev1.Node{node}}).UnreadySince
	}
	assert.Equal(t, map[string]time.Time{"n1": start}, since("1", corev1.ConditionFalse, start))
	assert.Equal(t, map[string]time.Time{"n1": start}, since("1", corev1.ConditionUnknown, start.Add(time.Hour)))
	assert.Equal(t, map[string]time.Time{"n1": start.Add(time.Minute)}, since("2", corev1.ConditionUnknown, start.Add(time.Minute)), "another node of the name")
	assert.Empty(t, since("2", corev1.ConditionTrue, start.Add(2*time.Minute)))
	assert.Equal(t, map[string]time.Time{"n1": start.Add(time.Hour)}, since("2", corev1.ConditionFalse, start.Add(time.Hour)))
}

func TestPodsOfNoNodeAreToldOfOnce(t *testing.T) {
	m, set := &Memory{}, named("a")
	strays := func(pods ...*corev1.Pod) []*corev1.Pod { return m.Recall(Seen{Set: set, Pods: pods}).Strays }
	first, second, placed := podOn("", "1", corev1.PodPending), podOn("", "2", corev1.PodPending), podOn("n1", "3", corev1.PodRunning)
	assert.Equal(t, []*corev1.Pod{first}, strays(first, placed))
	assert.Equal(t, []*corev1.Pod{second}, strays(first, second, placed))
	assert.Empty(t, strays(first, second, placed))
}
