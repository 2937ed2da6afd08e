package daemonset

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/controllers/nodes"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
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
			Images: []corev1.ContainerImage{{Names: []string{"nginx"}}},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now, Message: "kubelet is posting ready status"},
			},
		},
	}
}

func TestEventsOfNodesWakeTheSetsThatTheyConcern(t *testing.T) {
	set := &v1beta1.DaemonSet{}
	set.Spec.Template.Spec.NodeSelector = map[string]string{"color": "blue"}
	set.Spec.UpdateStrategy.RollingUpdate = &v1beta1.RollingUpdateDaemonSet{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}}
	green := func(n *corev1.Node) { n.Labels["color"] = "green" }
	for name, c := range map[string]struct {
		before, change func(*corev1.Node)
		changed, wakes bool
	}{
		"a heartbeat": {nil, func(n *corev1.Node) {
			n.ResourceVersion, n.Annotations["csi"], n.Status.Images = "8", "other", nil
			n.Status.Conditions[0].Status, n.Status.Conditions[1].LastHeartbeatTime = corev1.ConditionTrue, metav1.Now()
		}, false, false},
		"a label of others":         {nil, func(n *corev1.Node) { n.Labels["a"] = "b" }, true, false},
		"the label of the template": {nil, green, true, true},
		"the label of the strategy": {nil, func(n *corev1.Node) { n.Labels["canary"] = "yes" }, true, true},
		"a taint":                   {nil, func(n *corev1.Node) { n.Spec.Taints[0].Effect = corev1.TaintEffectNoExecute }, true, true},
		"when a taint was added":    {nil, func(n *corev1.Node) { n.Spec.Taints[0].TimeAdded = new(metav1.Now()) }, false, false},
		"a tolerated taint": {nil, func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
		}, true, false},
		"not ready":                   {nil, func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown }, true, true},
		"created anew":                {nil, func(n *corev1.Node) { n.UID = "u2" }, true, true},
		"not ready, another's node":   {green, func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionUnknown }, true, false},
		"label of the strategy there": {green, func(n *corev1.Node) { n.Labels["canary"] = "yes" }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			old, now := whole(), whole()
			if c.before != nil {
				c.before(old)
				c.before(now)
			}
			c.change(now)
			assert.Equal(t, c.changed, nodes.Changed(old, now), "changed")
			assert.Equal(t, c.wakes, concerned(set, eligibility.Compile(&set.Spec.Template, eligibility.ForDaemons), old, now), "wakes")
		})
	}
}
