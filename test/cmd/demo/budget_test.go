package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestTheViewOfTheBudget(t *testing.T) {
	const before = "flotilla/demo-app:v1"
	c, d := pod("c", "n2", after), pod("d", "n3", after)
	for name, tt := range map[string]struct {
		pods []*corev1.Pod
		want moment
		fail string
	}{
		"all are old": {
			pods: []*corev1.Pod{pod("a", "n1", before), pod("b", "n2", before), pod("c", "n2", before), pod("d", "n3", before)},
			want: moment{line: "●●●●  available 4, floor 3"},
		},
		"one is on the drained node": {
			pods: []*corev1.Pod{pod("a", "n1", after), pod("b", "n2", after), c, d},
			want: moment{line: "●●●●  available 4, floor 3"},
		},
		"one is updated": {
			pods: []*corev1.Pod{pod("a", "n1", before, heldByUpdate), pod("b", "n2", before), c, d},
			want: moment{line: "●●●○  available 3, floor 3  a restarts in place"},
		},
		"one leaves, and one comes": {
			pods: []*corev1.Pod{pod("a", "n1", before, leaving), pod("b", "n2", after, starting), c, d, pod("e", "n2", after)},
			want: moment{line: "●●●○  available 3, floor 3  a leaves n1, b starts"},
		},
		"two are gone": {
			pods: []*corev1.Pod{c, d},
			want: moment{line: "●●○○  available 2, floor 3"},
			fail: "2 pods are available, and 3 must be",
		},
		"all is done": {
			pods: []*corev1.Pod{pod("a", "n2", after), pod("b", "n2", after), c, d},
			want: moment{line: "●●●●  available 4, floor 3", done: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &course{node: "n1", image: after, least: wanted}
			c.floor.Store(3)
			got := c.tell(tt.pods)
			if tt.fail != "" {
				require.EqualError(t, got.err, tt.fail)
				got.err = nil
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestTheLeastIsKept(t *testing.T) {
	c := &course{node: "n1", image: after, least: wanted}
	c.tell([]*corev1.Pod{pod("a", "n1", after)})
	c.tell([]*corev1.Pod{pod("a", "n1", after), pod("b", "n1", after)})
	assert.Equal(t, 1, c.least)
}

func TestTheNodeWithTheMostPodsIsDrained(t *testing.T) {
	pods := []corev1.Pod{*pod("a", "n1", after), *pod("b", "n2", after), *pod("c", "n3", after), *pod("d", "n2", after)}
	assert.Equal(t, "n2", crowded(pods))
}
