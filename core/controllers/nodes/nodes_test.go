package nodes_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/flotilla-project/flotilla/core/controllers/nodes"
)

// whole is a node with all that a kubelet and others write.
func whole() *corev1.Node {
	now := metav1.NewTime(time.Unix(1_700_000_000, 0))
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n1", UID: "u1", ResourceVersion: "7", Labels: map[string]string{"color": "blue"}, CreationTimestamp: now,
			Annotations: map[string]string{"csi": "a lot"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "busy", Effect: corev1.TaintEffectNoSchedule}}, ProviderID: "cloud"},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
			Images:      []corev1.ContainerImage{{Names: []string{"nginx"}}},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now, Message: "kubelet is posting ready status"},
			},
		},
	}
}

func trimmed(t *testing.T, settings cache.ByObject, node *corev1.Node) *corev1.Node {
	t.Helper()
	object, err := settings.Transform(node)
	require.NoError(t, err)
	return object.(*corev1.Node)
}

func TestTrimmedNodesKeepWhatRulesRead(t *testing.T) {
	got, w := trimmed(t, nodes.Cached(), whole()), whole()
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", ResourceVersion: "7", Labels: w.Labels, CreationTimestamp: w.CreationTimestamp},
		Spec:       corev1.NodeSpec{Unschedulable: true, Taints: w.Spec.Taints},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: w.CreationTimestamp},
		}},
	}
	assert.Equal(t, want, got)
	assert.Equal(t, got, trimmed(t, nodes.Cached(), got.DeepCopy()), "once more changes nothing")

	got = trimmed(t, nodes.CachedWithAllocatable(), whole())
	want.Status.Allocatable = w.Status.Allocatable
	assert.Equal(t, want, got)
	assert.Equal(t, got, trimmed(t, nodes.CachedWithAllocatable(), got.DeepCopy()), "once more changes nothing")
}

func TestEventsTellWhatRulesRead(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		told   bool
	}{
		"a heartbeat": {func(n *corev1.Node) {
			n.ResourceVersion, n.Annotations["csi"], n.Status.Images = "8", "other", nil
			n.Status.Conditions[0].Status, n.Status.Conditions[1].LastHeartbeatTime = corev1.ConditionTrue, metav1.Now()
		}, false},
		"when a taint was added": {func(n *corev1.Node) { n.Spec.Taints[0].TimeAdded = new(metav1.Now()) }, false},
		"the same amount":        {func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("2000m") }, false},
		"another amount":         {func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("1") }, true},
		"a label":                {func(n *corev1.Node) { n.Labels["a"] = "b" }, true},
		"a taint":                {func(n *corev1.Node) { n.Spec.Taints[0].Effect = corev1.TaintEffectNoExecute }, true},
		"uncordoned":             {func(n *corev1.Node) { n.Spec.Unschedulable = false }, true},
		"not ready":              {func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown }, true},
		"created anew":           {func(n *corev1.Node) { n.UID = "u2" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := whole()
			c.change(now)
			told := false
			e := event.UpdateEvent{ObjectOld: trimmed(t, nodes.CachedWithAllocatable(), whole()), ObjectNew: trimmed(t, nodes.CachedWithAllocatable(), now)}
			nodes.Events(func(_ context.Context, old, now *corev1.Node, _ nodes.Queue) {
				told = old == e.ObjectOld && now == e.ObjectNew
			}).Update(t.Context(), e, nil)
			assert.Equal(t, c.told, told)
		})
	}
}

func TestNodesComeAndGo(t *testing.T) {
	var told [][2]*corev1.Node
	events := nodes.Events(func(_ context.Context, old, now *corev1.Node, _ nodes.Queue) {
		told = append(told, [2]*corev1.Node{old, now})
	})
	node := whole()
	events.Create(t.Context(), event.CreateEvent{Object: node, IsInInitialList: true}, nil)
	assert.Empty(t, told, "everybody is woken at the start")
	events.Create(t.Context(), event.CreateEvent{Object: node}, nil)
	events.Delete(t.Context(), event.DeleteEvent{Object: node}, nil)
	assert.Equal(t, [][2]*corev1.Node{{nil, node}, {node, nil}}, told)
}
