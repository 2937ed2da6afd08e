package story

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// A story ends once its watch has shown all that was there: a pod that only a list shows is no state that was checked.
func TestAWatchCatchesUp(t *testing.T) {
	pod := func(name, version string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version}}
	}
	list := func(version string, pods ...corev1.Pod) *corev1.PodList {
		return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: pods}
	}
	event := func(of watch.EventType, name, version string) watch.Event {
		o := pod(name, version)
		return watch.Event{Type: of, Object: &o}
	}
	for name, tt := range map[string]struct {
		events []watch.Event
		list   *corev1.PodList
		want   string
	}{
		"nothing has changed":         {nil, list("120", pod("a", "98")), ""},
		"a change is shown":           {[]watch.Event{event(watch.Modified, "a", "101")}, list("120", pod("a", "101")), ""},
		"a change is not":             {nil, list("120", pod("a", "101")), "it has yet to show resourceVersion 101 of pod a"},
		"a new pod is not":            {nil, list("120", pod("a", "98"), pod("b", "101")), "it has yet to show resourceVersion 101 of pod b"},
		"one that went is gone":       {[]watch.Event{event(watch.Deleted, "a", "101")}, list("120"), ""},
		"one that went is not":        {nil, list("120"), "it has yet to show that pod a is gone"},
		"it is ahead with a new pod":  {[]watch.Event{event(watch.Added, "b", "121")}, list("120", pod("a", "98")), ""},
		"it is ahead with a deletion": {[]watch.Event{event(watch.Deleted, "a", "1000")}, list("999", pod("a", "98")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShown(list("100", pod("a", "98")))
			for _, e := range tt.events {
				s.take(e, func(Pods) error { return nil })
			}
			if err := s.behind(tt.list); tt.want != "" {
				assert.EqualError(t, err, tt.want)
			} else {
				assert.NoError(t, err)
			}
		})
	}
}

// A watch that the server ends is an error, and its end by the story is none.
func TestAWatchEndsOnce(t *testing.T) {
	s := newShown(&corev1.PodList{})
	failed := watch.Event{Type: watch.Error, Object: &metav1.Status{Message: "body closed"}}
	s.take(failed, nil)
	assert.Len(t, s.end(), 1)
	s.take(failed, nil)
	assert.Len(t, s.end(), 1)
}
