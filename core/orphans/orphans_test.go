package orphans

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/gen"
)

const label = "example.com/id"

// server answers lists of pods, and counts them.
type server struct {
	client.Reader
	pods  []*corev1.Pod
	asked int
	err   error
}

func (s *server) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	s.asked++
	var o client.ListOptions
	o.ApplyOptions(options)
	for _, pod := range s.pods {
		if pod.Namespace == o.Namespace && o.LabelSelector.Matches(labels.Set(pod.Labels)) {
			list.(*corev1.PodList).Items = append(list.(*corev1.PodList).Items, *pod)
		}
	}
	return s.err
}

func owner() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: gen.Namespace, UID: "web-uid", Generation: 1}}
}

func search(o *corev1.ConfigMap) Search {
	return Search{Owner: o, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
}

func pod(name string, options ...gen.PodOption) *corev1.Pod {
	return gen.Pod(name, append([]gen.PodOption{gen.Label("app", "web")}, options...)...)
}

func TestLostPodsAreFound(t *testing.T) {
	own := gen.OwnedBy(owner())
	other := owner()
	other.UID = "other-uid"
	s := &server{pods: []*corev1.Pod{
		pod("orphan"), pod("unlabelled", own), pod("owned", own, gen.Label(label, "1")),
		pod("foreign", gen.OwnedBy(other)), pod("leaving", gen.Terminating()),
		pod("unselected", gen.Label("app", "db")), pod("elsewhere", gen.Namespaced("elsewhere")), pod("unwanted"),
	}}
	asking := search(owner())
	asking.Wanted = func(pod *corev1.Pod) bool { return pod.Name != "unwanted" }
	found, err := New(s, label).Find(t.Context(), asking, time.Time{})
	require.NoError(t, err)
	var names []string
	for _, o := range found {
		names = append(names, o.Name)
	}
	assert.Equal(t, []string{"orphan", "unlabelled"}, names)
}

func TestTheServerIsAskedOnlyWhenItMayKnowMore(t *testing.T) {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	s := &server{}
	f := New(s, label)
	ask := func(after time.Duration, change func(*corev1.ConfigMap)) int {
		before, o := s.asked, owner()
		change(o)
		_, err := f.Find(t.Context(), search(o), start.Add(after))
		require.NoError(t, err)
		return s.asked - before
	}
	same := func(*corev1.ConfigMap) {}
	newer := func(o *corev1.ConfigMap) { o.Generation = 2 }
	assert.Equal(t, 1, ask(0, same), "first sync")
	assert.Equal(t, 0, ask(time.Minute, same), "nothing changed")
	assert.Equal(t, 1, ask(2*time.Minute, newer), "the spec changed")
	assert.Equal(t, 0, ask(3*time.Minute, newer))
	assert.Equal(t, 1, ask(12*time.Minute, newer), "ten minutes have passed")
	assert.Equal(t, 1, ask(13*time.Minute, func(o *corev1.ConfigMap) { o.Generation, o.UID = 2, "another" }), "another object of the name")
	f.Forget(types.NamespacedName{Namespace: gen.Namespace, Name: "web"})
	assert.Equal(t, 1, ask(14*time.Minute, same), "forgotten")
	assert.Equal(t, 0, ask(time.Hour, func(o *corev1.ConfigMap) { o.DeletionTimestamp = &metav1.Time{Time: start} }), "being deleted")
}

func TestWhatWasFoundIsFoundAgain(t *testing.T) {
	s := &server{pods: []*corev1.Pod{pod("orphan")}}
	f := New(s, label)
	for range 2 {
		found, err := f.Find(t.Context(), search(owner()), time.Time{})
		require.NoError(t, err)
		assert.Len(t, found, 1)
	}
}

func TestFailuresAreAskedAgain(t *testing.T) {
	s := &server{err: errors.New("down")}
	f := New(s, label)
	_, err := f.Find(t.Context(), search(owner()), time.Time{})
	require.EqualError(t, err, "list pods by selector: down")
	_, err = f.Find(t.Context(), search(owner()), time.Time{})
	require.Error(t, err)
	assert.Equal(t, 2, s.asked)
}

func TestSelectorsOfEverythingHaveNoOrphans(t *testing.T) {
	for name, selector := range map[string]*metav1.LabelSelector{
		"nil": nil, "empty": {}, "invalid": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{pods: []*corev1.Pod{pod("orphan")}}
			found, err := New(s, label).Find(t.Context(), Search{Owner: owner(), Selector: selector}, time.Time{})
			require.NoError(t, err)
			assert.Empty(t, found)
			assert.Zero(t, s.asked)
		})
	}
}
