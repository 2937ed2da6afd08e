package forecast

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod on a small node is resized from 1 cpu, and a second pod asks for 1 cpu. The scheduler counts the larger amount until the
// kubelet has given it, or has found that it never can.
func TestPodsCountWithTheirResizes(t *testing.T) {
	const room = 2
	tests := map[string]struct {
		asks, has string
		reason    string // of condition PodResizePending
		fits      bool
	}{
		"no resize":                            {asks: "1", has: "1", fits: true},
		"to less, not given yet":               {asks: "500m", has: "1500m"},
		"to less":                              {asks: "500m", has: "500m", fits: true},
		"to more, not given yet":               {asks: "1500m", has: "1"},
		"to more than is free":                 {asks: "1500m", has: "1", reason: corev1.PodReasonDeferred},
		"to more than the node has":            {asks: "100k", has: "1", reason: corev1.PodReasonInfeasible, fits: true},
		"to more than the node has, from much": {asks: "100k", has: "1500m", reason: corev1.PodReasonInfeasible},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			there := asking(tt.asks)
			there.Spec.NodeName = "small"
			given := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(tt.has)}
			there.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "main", AllocatedResources: given, Resources: &corev1.ResourceRequirements{Requests: given},
			}}
			if tt.reason != "" {
				there.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: tt.reason}}
			}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "small"}}
			node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(room, resource.DecimalSI)}
			s := newScheduler([]*corev1.Pod{there}, nil)
			here := site{Node: node, load: s.load(node.Name)}
			next := asking("1")
			why := filter(here, []site{here}, needs{pod: next, requests: requests(next)})
			assert.Equal(t, tt.fits, why == "", why)
		})
	}
}

// asking returns a pod of one container that requests so much cpu.
func asking(cpu string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	pod.Spec.Containers = []corev1.Container{{
		Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
	}}
	return pod
}
