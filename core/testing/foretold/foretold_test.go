package foretold

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
)

func pod(uid, revision, id string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Labels: map[string]string{contract.RevisionLabel: revision}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "main", ContainerID: id}, {Name: "side", ContainerID: "s"}}},
	}
}

func TestOutcomesAreCounted(t *testing.T) {
	before := Portray([]*corev1.Pod{pod("a", "1", "x"), pod("b", "1", "x"), pod("c", "1", "x")})
	for name, c := range map[string]struct {
		warning string
		now     []*corev1.Pod
	}{
		"nothing":       {"no pod changes", []*corev1.Pod{pod("a", "1", "x"), pod("b", "1", "x"), pod("c", "1", "x")}},
		"recreated":     {"2 of 3 pods will be recreated, at most 1 at a time: why", []*corev1.Pod{pod("a", "1", "x"), pod("d", "2", "x"), pod("e", "2", "x")}},
		"a restart":     {"2 of 3 pods will be updated in place, at most 1 at a time: container main (image) restarts", []*corev1.Pod{pod("a", "1", "x"), pod("b", "2", "y"), pod("c", "2", "y")}},
		"no restart":    {"1 of 3 pods will be updated in place: no container restarts; metadata changes", []*corev1.Pod{pod("a", "1", "x"), pod("b", "2", "x"), pod("c", "1", "x")}},
		"some new pods": {"no pod changes", []*corev1.Pod{pod("a", "1", "x"), pod("b", "1", "x"), pod("c", "1", "x"), pod("d", "1", "x")}},
	} {
		assert.Equal(t, By(c.warning), before.Until(c.now), name)
	}
	crashed := before.Until([]*corev1.Pod{pod("a", "1", "y"), pod("b", "2", "x"), pod("c", "2", "y")})
	assert.Equal(t, Outcome{InPlace: 2, Restarted: "; [main] in a pod that keeps its revision; main"}, crashed)
}
