package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
)

// inZone gives a pod its zone, and the deletion cost of its subset.
func inZone(zone string) func(*corev1.Pod) {
	return func(o *corev1.Pod) {
		o.Labels[zonePatch] = zone
		o.Annotations = map[string]string{contract.PodDeletionCostAnnotation: "100"}
	}
}

func withoutCost(o *corev1.Pod) { o.Annotations = nil }

func unschedulable(o *corev1.Pod) {
	o.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
	}}
}

func TestTheViewOfZones(t *testing.T) {
	z := zones{of: map[string]string{"n1": "a", "n2": "b"}}
	inA, inB := pod("p1", "n1", after, inZone("a")), pod("p2", "n2", after, inZone("b"))
	for name, tt := range map[string]struct {
		pods []*corev1.Pod
		want moment
		fail string
	}{
		"none":            {want: moment{line: "zone a    zone b"}},
		"as many":         {pods: []*corev1.Pod{inA, inB}, want: moment{line: "zone a ●   zone b ●", done: true}},
		"one too many":    {pods: []*corev1.Pod{inA, inB, pod("p3", "n2", after, inZone("b"))}, want: moment{line: "zone a ●   zone b ●●"}},
		"without a cost":  {pods: []*corev1.Pod{inA, pod("p2", "n2", after, inZone("b"), withoutCost)}, want: moment{line: "zone a ●   zone b ●"}},
		"one starts":      {pods: []*corev1.Pod{inA, inB, pod("p3", "n2", after, inZone("b"), starting)}, want: moment{line: "zone a ●   zone b ●○"}},
		"one leaves":      {pods: []*corev1.Pod{inA, inB, pod("p3", "n2", after, inZone("b"), leaving)}, want: moment{line: "zone a ●   zone b ●   p3 leaves b", done: true}},
		"without a node":  {pods: []*corev1.Pod{inB, pod("p3", "", after, inZone("a"), unschedulable)}, want: moment{line: "zone a ○   zone b ●   no node for p3 in a"}},
		"without subset":  {pods: []*corev1.Pod{inA, inB, pod("p3", "", after, starting)}, want: moment{line: "zone a ●   zone b ●"}},
		"in another zone": {pods: []*corev1.Pod{inA, pod("p2", "n1", after, inZone("b"))}, want: moment{line: "zone a ●   zone b ○"}, fail: `pod p2 of zone "b" is on node n1 in zone "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := z.tell(tt.pods, map[string]int{"a": 1, "b": 1})
			if tt.fail != "" {
				require.EqualError(t, got.err, tt.fail)
				got.err = nil
			}
			assert.Equal(t, tt.want, got)
		})
	}
}
