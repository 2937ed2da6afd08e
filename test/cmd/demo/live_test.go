package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/flotilla-project/flotilla/core/contract"
)

// after is the image that pods are updated to.
const after = "flotilla/demo-app:v2"

// pod returns a running pod that is ready, with changes.
func pod(name, node, image string, change ...func(*corev1.Pod)) *corev1.Pod {
	o := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: image}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(o)
	}
	return o
}

func leaving(o *corev1.Pod) { o.DeletionTimestamp = new(metav1.Now()) }

func starting(o *corev1.Pod) { o.Status = corev1.PodStatus{Phase: corev1.PodPending} }

func heldByUpdate(o *corev1.Pod) {
	o.Status.Conditions = append(o.Status.Conditions, corev1.PodCondition{Type: contract.InPlaceUpdateReady, Status: corev1.ConditionFalse})
}

func TestTextIsHandedOverByLine(t *testing.T) {
	var got []string
	l := &lines{each: func(line string) { got = append(got, line) }}
	for _, part := range []string{"one\ntw", "o", "\n\nthree\n", "rest"} {
		n, err := l.Write([]byte(part))
		require.NoError(t, err)
		assert.Len(t, part, n)
	}
	assert.Equal(t, []string{"one", "two", "", "three"}, got)
}

func TestTheViewSeesEveryChange(t *testing.T) {
	watcher := watch.NewFakeWithChanSize(4, false)
	l := &live{pods: map[types.UID]*corev1.Pod{}, watcher: watcher}
	watcher.Add(pod("b", "n1", after))
	watcher.Add(pod("a", "n1", after, starting))
	watcher.Modify(pod("a", "n1", after))
	watcher.Delete(pod("b", "n1", after))
	var seen []int
	require.NoError(t, l.show(t.Context(), func(pods []*corev1.Pod) moment {
		if len(pods) == 2 {
			assert.Equal(t, "a", pods[0].Name, "by name")
		}
		seen = append(seen, len(pods))
		return moment{done: len(seen) == 5}
	}))
	assert.Equal(t, []int{0, 1, 2, 2, 1}, seen)
	watcher.Stop()
	require.ErrorContains(t, l.show(t.Context(), func([]*corev1.Pod) moment { return moment{} }), "has ended")
}

func TestAWatchThatFailsEndsTheView(t *testing.T) {
	watcher := watch.NewFakeWithChanSize(1, false)
	l := &live{pods: map[types.UID]*corev1.Pod{}, watcher: watcher}
	watcher.Error(&metav1.Status{Message: "too old"})
	require.ErrorContains(t, l.show(t.Context(), func([]*corev1.Pod) moment { return moment{} }), "too old")
}
