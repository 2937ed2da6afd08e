package orphans

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// world is a cache and a server of pods; it counts the questions to the server.
type world struct {
	client.Reader
	pods  []*corev1.Pod
	asked int
	err   error
}

func (w *world) finder() *Finder { return New(w.uncontrolled, w, label) }

func (w *world) uncontrolled(_ context.Context, namespace string) (found []*corev1.Pod, err error) {
	for _, pod := range w.pods {
		if pod.Namespace == namespace && pod.Labels[label] != "" && metav1.GetControllerOf(pod) == nil {
			found = append(found, pod)
		}
	}
	return found, nil
}

func (w *world) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	w.asked++
	var o client.ListOptions
	o.ApplyOptions(options)
	for _, pod := range w.pods {
		if pod.Namespace == o.Namespace && o.LabelSelector.Matches(labels.Set(pod.Labels)) {
			list.(*corev1.PodList).Items = append(list.(*corev1.PodList).Items, *pod)
		}
	}
	return w.err
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
	own, labelled := gen.OwnedBy(owner()), gen.Label(label, "1")
	other := owner()
	other.UID = "other-uid"
	w := &world{pods: []*corev1.Pod{
		pod("orphan"), pod("orphan-labelled", labelled), pod("unlabelled", own), pod("owned", own, labelled),
		pod("foreign", gen.OwnedBy(other)), pod("foreign-labelled", gen.OwnedBy(other), labelled),
		pod("leaving", gen.Terminating()), pod("leaving-labelled", gen.Terminating(), labelled),
		pod("unselected", gen.Label("app", "db")), pod("unselected-labelled", gen.Label("app", "db"), labelled),
		pod("elsewhere", gen.Namespaced("elsewhere")), pod("elsewhere-labelled", gen.Namespaced("elsewhere"), labelled),
		pod("unwanted"), pod("unwanted-labelled", labelled),
	}}
	asking := search(owner())
	asking.Wanted = func(pod *corev1.Pod) bool { return !strings.HasPrefix(pod.Name, "unwanted") }
	find := func(f *Finder) (names []string) {
		found, err := f.Find(t.Context(), asking, time.Time{})
		require.NoError(t, err)
		for _, o := range found {
			names = append(names, o.Name)
		}
		return names
	}
	assert.Equal(t, []string{"orphan-labelled", "orphan", "unlabelled"}, find(w.finder()))
	asking.Complete = true
	assert.Equal(t, []string{"orphan-labelled"}, find(w.finder()), "the cache is looked at whenever the server is asked")
}

func TestTheServerIsAskedOnlyWhenItMayKnowMore(t *testing.T) {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	s := &world{}
	f := s.finder()
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
	f.Doubt(types.NamespacedName{Namespace: gen.Namespace, Name: "web"})
	assert.Equal(t, 1, ask(15*time.Minute, same), "in doubt")
	assert.Equal(t, 0, ask(time.Hour, func(o *corev1.ConfigMap) { o.DeletionTimestamp = &metav1.Time{Time: start} }), "being deleted")
}

func TestACompleteWorkloadIsAskedAboutLater(t *testing.T) {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	w := &world{}
	f := w.finder()
	complete := search(owner())
	complete.Complete = true
	ask := func(after time.Duration, s Search) int {
		before := w.asked
		_, err := f.Find(t.Context(), s, start.Add(after))
		require.NoError(t, err)
		return w.asked - before
	}
	assert.Equal(t, 0, ask(0, complete), "first sync")
	assert.Equal(t, 1, ask(Interval, complete), "at the end of the first interval at the latest")
	assert.Equal(t, 0, ask(Interval+time.Minute, search(owner())), "it lacks something, and has just been asked about")

	f = w.finder()
	assert.Equal(t, 0, ask(0, complete))
	assert.Equal(t, 1, ask(time.Second, search(owner())), "before anything is done for want of a pod")
	assert.Equal(t, 0, ask(2*time.Second, search(owner())))

	f = w.finder()
	changed := complete
	changed.Owner = owner()
	changed.Owner.SetGeneration(2)
	assert.Equal(t, 0, ask(0, complete))
	assert.Equal(t, 1, ask(time.Second, changed), "the spec changed")
}

func TestFirstQuestionsAreSpreadOverAnInterval(t *testing.T) {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	w := &world{}
	f := w.finder()
	const sets, minutes = 1000, int(Interval / time.Minute)
	for minute := range minutes + 1 {
		before := w.asked
		for i := range sets {
			s := search(owner())
			s.Complete = true
			s.Owner.SetName(fmt.Sprint("web-", i))
			s.Owner.SetUID(types.UID(fmt.Sprint("uid-", i)))
			_, err := f.Find(t.Context(), s, start.Add(time.Duration(minute)*time.Minute))
			require.NoError(t, err)
		}
		assert.Less(t, w.asked-before, 2*sets/minutes, "minute %d", minute)
	}
	assert.Equal(t, sets, w.asked)
}

func TestWhatWasFoundIsFoundAgain(t *testing.T) {
	s := &world{pods: []*corev1.Pod{pod("orphan")}}
	f := s.finder()
	for range 2 {
		found, err := f.Find(t.Context(), search(owner()), time.Time{})
		require.NoError(t, err)
		assert.Len(t, found, 1)
	}
}

func TestFailuresAreAskedAgain(t *testing.T) {
	s := &world{err: errors.New("down")}
	f := s.finder()
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
			s := &world{pods: []*corev1.Pod{pod("orphan"), pod("labelled", gen.Label(label, "1"))}}
			found, err := s.finder().Find(t.Context(), Search{Owner: owner(), Selector: selector}, time.Time{})
			require.NoError(t, err)
			assert.Empty(t, found)
			assert.Zero(t, s.asked)
		})
	}
}
