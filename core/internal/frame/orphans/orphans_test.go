package orphans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/testing/gen"
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

func (w *world) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	w.asked++
	for _, pod := range w.pods {
		if pod.Name == key.Name && pod.Namespace == key.Namespace {
			pod.DeepCopyInto(o.(*corev1.Pod))
			return w.err
		}
	}
	return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
}

func owner() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: gen.Namespace, UID: "web-uid", Generation: 1}}
}

func search(o *corev1.ConfigMap) Search {
	return Search{Owner: o, Observed: o.Generation, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
}

func pod(name string, options ...gen.PodOption) *corev1.Pod {
	return gen.Pod(name, append([]gen.PodOption{gen.Label("app", "web")}, options...)...)
}

func TestLostPodsAreFound(t *testing.T) {
	own, labelled := gen.OwnedBy(owner()), gen.Label(label, "1")
	other := owner()
	other.UID = "other-uid"
	w := &world{pods: []*corev1.Pod{
		pod("orphan"), pod("orphan-labelled", labelled), pod("unlabelled", own), pod("unlabelled-leaving", own, gen.Terminating()), pod("owned", own, labelled),
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
		for _, o := range slices.Concat(found.Orphans, found.Own) {
			names = append(names, o.Name)
		}
		return names
	}
	assert.Equal(t, []string{"orphan-labelled", "orphan", "unlabelled", "unlabelled-leaving"}, find(w.finder()))
	asking.Replicas = new(int32)
	assert.Equal(t, []string{"orphan-labelled"}, find(w.finder()), "the cache is looked at whenever the server is asked")
}

// A cache that is behind may show a pod with the label, or with its controller, that the server says has neither: it
// is one pod, and what the cache shows of it is what is judged.
func TestAPodIsFoundOnce(t *testing.T) {
	for name, shown := range map[string]*corev1.Pod{
		"as an orphan": pod("lost", gen.Label(label, "1")),
		"as owned":     pod("lost", gen.Label(label, "1"), gen.OwnedBy(owner())),
	} {
		t.Run(name, func(t *testing.T) {
			cache, server := &world{pods: []*corev1.Pod{shown}}, &world{pods: []*corev1.Pod{pod("lost")}}
			asking := search(owner())
			if metav1.IsControlledBy(shown, owner()) {
				asking.Pods = []*corev1.Pod{shown}
			}
			found, err := New(cache.uncontrolled, server, label).Find(t.Context(), asking, time.Time{})
			require.NoError(t, err)
			require.Equal(t, 1, server.asked)
			assert.Len(t, slices.Concat(asking.Pods, found.Orphans, found.Own), 1)
		})
	}
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
	assert.Equal(t, 0, ask(time.Hour, func(o *corev1.ConfigMap) { o.DeletionTimestamp = &metav1.Time{Time: start} }), "being deleted")
}

func TestACompleteWorkloadIsAskedAboutLater(t *testing.T) {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	w := &world{}
	f := w.finder()
	complete := search(owner())
	complete.Replicas = new(int32)
	ask := func(after time.Duration, s Search) int {
		before := w.asked
		_, err := f.Find(t.Context(), s, start.Add(after))
		require.NoError(t, err)
		return w.asked - before
	}
	assert.Equal(t, 0, ask(0, complete), "first sync")
	assert.Equal(t, 1, ask(interval, complete), "at the end of the first interval at the latest")
	assert.Equal(t, 0, ask(interval+time.Minute, search(owner())), "it lacks something, and has just been asked about")

	f = w.finder()
	assert.Equal(t, 0, ask(0, complete))
	assert.Equal(t, 1, ask(time.Second, search(owner())), "before anything is done for want of a pod")
	assert.Equal(t, 0, ask(2*time.Second, search(owner())))

	f = w.finder()
	changed := complete
	changed.Owner = owner()
	changed.Owner.SetGeneration(2)
	changed.Observed = 2
	assert.Equal(t, 0, ask(0, complete))
	assert.Equal(t, 1, ask(time.Second, changed), "the spec changed")
}

func TestFirstQuestionsAreSpreadOverAnInterval(t *testing.T) {
	start := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	w := &world{}
	f := w.finder()
	const sets, minutes = 1000, int(interval / time.Minute)
	for minute := range minutes + 1 {
		before := w.asked
		for i := range sets {
			s := search(owner())
			s.Replicas = new(int32)
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
		assert.Len(t, found.Orphans, 1)
	}
}

func TestFailuresAreAskedAgain(t *testing.T) {
	s := &world{err: errors.New("down")}
	f := s.finder()
	_, err := f.Find(t.Context(), search(owner()), time.Time{})
	require.EqualError(t, err, "list pods without label example.com/id: down")
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

// doubting looks at a workload whose pods the test changes, and counts the pods that were found.
type doubting struct {
	*world
	*Finder
	t      *testing.T
	search Search
	now    time.Time
}

func inDoubt(t *testing.T, pods ...*corev1.Pod) *doubting {
	t.Helper()
	w := &world{pods: pods}
	d := &doubting{world: w, Finder: w.finder(), t: t, search: search(owner())}
	d.search.Replicas, d.search.Counted = new(int32(len(pods))), int32(len(pods))
	require.Empty(t, d.looks(), "the workload is complete")
	require.Zero(t, w.asked)
	return d
}

// looks returns the names of the workload's pods that the finder finds.
func (d *doubting) looks() (own []string) {
	d.t.Helper()
	d.search.Pods = nil
	for _, pod := range d.pods {
		if pod.Labels[label] != "" && metav1.IsControlledBy(pod, d.search.Owner) {
			d.search.Pods = append(d.search.Pods, pod)
		}
	}
	found, err := d.Find(d.t.Context(), d.search, d.now)
	require.NoError(d.t, err)
	for _, pod := range found.Own {
		own = append(own, pod.Name)
	}
	return own
}

func owned(name string, options ...gen.PodOption) *corev1.Pod {
	return pod(name, append([]gen.PodOption{gen.OwnedBy(owner()), gen.Label(label, "1")}, options...)...)
}

// A pod that loses its labels is found by the next look, whatever its labels are, and as long as it is hidden.
func TestPodsWithoutAnyLabelAreFound(t *testing.T) {
	d := inDoubt(t, owned("a"), owned("b"))
	d.pods[1].Labels = nil
	assert.Equal(t, []string{"b"}, d.looks())
	d.pods[1].DeletionTimestamp = &metav1.Time{Time: d.now}
	assert.Equal(t, []string{"b"}, d.looks(), "it is still hidden")
	d.pods[1].Labels = map[string]string{label: "1"}
	assert.Empty(t, d.looks())
	before := d.asked
	assert.Empty(t, d.looks())
	assert.Equal(t, before, d.asked, "nothing is in doubt any more")
}

// A pod that has its label back is found though the cache still takes it for gone.
func TestPodsThatGotTheirLabelBackAreFound(t *testing.T) {
	d := inDoubt(t, owned("a"), owned("b"))
	s := d.search
	s.Pods = d.pods[:1]
	found, err := d.Find(t.Context(), s, d.now)
	require.NoError(t, err)
	require.Len(t, found.Own, 1)
	assert.Equal(t, "b", found.Own[0].Name)
	assert.Empty(t, d.looks(), "the cache shows it")
}

func TestOnlyPodsThatNobodyDeletesAreMissed(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(d *doubting)
		asked int
	}{
		"gone without a word": {func(d *doubting) { d.pods = d.pods[:1] }, 2},
		"deleted by others": {func(d *doubting) {
			d.pods[1].DeletionTimestamp = &metav1.Time{Time: d.now}
			d.looks()
			d.pods = d.pods[:1]
		}, 0},
		"left by the workload's will": {func(d *doubting) {
			d.Removed(memory.KeyOf(d.search.Owner), d.pods[1].UID)
			d.pods = d.pods[:1]
		}, 0},
		"orphaned": {func(d *doubting) { d.pods[1].OwnerReferences = nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := inDoubt(t, owned("a"), owned("b"))
			c.leave(d)
			d.search.Replicas, d.search.Counted = new(int32(1)), 1
			for range 3 {
				assert.Empty(t, d.looks())
			}
			assert.Equal(t, c.asked, d.asked)
		})
	}
}

// A pod can lose its labels before the workload is looked at for the first time since it was created.
func TestCreatedPodsAreMissedAtOnce(t *testing.T) {
	d := inDoubt(t, owned("a"))
	made := owned("b", gen.Change(func(o *corev1.Pod) { o.Labels = nil }))
	d.pods = append(d.pods, made)
	assert.Empty(t, d.looks())
	d.Created(memory.KeyOf(d.search.Owner), made)
	assert.Equal(t, []string{"b"}, d.looks())
}

// A name can be taken by a pod that the cache does not show.
func TestPodsInDoubtAreLookedFor(t *testing.T) {
	d := inDoubt(t, owned("a"))
	d.pods = append(d.pods, owned("b", gen.Terminating(), gen.Change(func(o *corev1.Pod) { o.Labels = nil })))
	d.Recheck(memory.KeyOf(d.search.Owner))
	assert.Equal(t, []string{"b"}, d.looks())
}

// What was lost while nobody looked is missing from the count of the last one who did.
func TestFewerPodsThanCountedAreInDoubt(t *testing.T) {
	bare := gen.Change(func(o *corev1.Pod) { o.Labels = nil })
	w := &world{pods: []*corev1.Pod{owned("a"), owned("b", bare)}}
	s := search(owner())
	s.Pods, s.Replicas, s.Counted = w.pods[:1], new(int32(2)), 2
	found, err := w.finder().Find(t.Context(), s, time.Time{})
	require.NoError(t, err)
	assert.Len(t, found.Own, 1)
	s.Counted = 1
	found, err = w.finder().Find(t.Context(), s, time.Time{})
	require.NoError(t, err)
	assert.Empty(t, found.Own, "the selector does not match it")
}

// A name that a pod of somebody else has may be free one day.
func TestTakenNamesAreRememberedForAWhile(t *testing.T) {
	d := inDoubt(t, owned("a"))
	d.NameTaken(memory.KeyOf(d.search.Owner), "b", d.now)
	for after, want := range map[time.Duration]int{0: 1, interval - 1: 1, interval: 0} { // in any order
		d.NameTaken(memory.KeyOf(d.search.Owner), "b", d.now)
		found, err := d.Find(t.Context(), d.search, d.now.Add(after))
		require.NoError(t, err)
		assert.Len(t, found.Taken, want)
	}
}
