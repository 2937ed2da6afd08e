package rollout

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// An undo of a broken canary changed nothing where the partition allowed as many pods of other revisions.
func TestPodsThatAnUndoLeaves(t *testing.T) {
	pods := func(revisions ...string) (all []*corev1.Pod) {
		for i, revision := range revisions {
			all = append(all, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: "web-" + string(rune('0'+i)), Labels: map[string]string{"controller-revision-hash": revision},
			}})
		}
		return all
	}
	cases := []struct {
		name, kind string
		target     int
		pods       []*corev1.Pod
		want       int
	}{
		{"without partition", "CloneSet", 4, pods("a", "a", "a", "b"), 0},
		{"a canary", "CloneSet", 1, pods("a", "a", "a", "b"), 1},
		{"a canary that is larger", "CloneSet", 2, pods("a", "b", "b", "b"), 2},
		{"last ordinals", "StatefulSet", 1, pods("a", "a", "a", "b"), 0},
		{"first ordinals", "StatefulSet", 1, pods("b", "b", "a", "b"), 2},
		{"selected nodes", "DaemonSet", workload.Unknown, pods("a", "b"), 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := &workload.Set{Kind: workload.Kind{Name: c.kind}, Wanted: 4, Target: c.target}
			assert.Equal(t, c.want, keptElsewhere(s, c.pods, "web-a"))
		})
	}
}
