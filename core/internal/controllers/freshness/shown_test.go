package freshness

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
)

// shownTracker returns an open tracker, its store of pods that are indexed by label app, and what plans see.
func shownTracker(t *testing.T) (*Tracker, toolscache.Indexer, toolscache.Indexer) {
	t.Helper()
	g, _, _ := newTestTracker()
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{"app": func(o any) ([]string, error) {
		return []string{o.(*corev1.Pod).Labels["app"]}, nil
	}})
	g.sources[schema.GroupKind{Kind: "Pod"}].store = store
	return g, store, g.Over(store)
}

// describe says what is in a store: names, UIDs and versions, and a cross for what is on its way out.
func describe(items []any) []string {
	var all []string
	for _, item := range items {
		p := item.(*corev1.Pod)
		text := p.Name + " " + string(p.UID) + "@" + p.ResourceVersion
		if p.DeletionTimestamp != nil {
			text += " x"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func TestPlansSeeTheAnswersUntilTheStoreShowsThem(t *testing.T) {
	create := func(version string) func(*Tracker) {
		return func(g *Tracker) { g.Created(workload, pod("a", "1", version)) }
	}
	write := func(version string) func(*Tracker) {
		return func(g *Tracker) { g.Written(workload, pod("a", "1", version)) }
	}
	remove := func(version string) func(*Tracker) {
		return func(g *Tracker) { g.Deleted(workload, pod("a", "1", version)) }
	}
	tests := map[string]struct {
		before []*corev1.Pod // in the store
		writes []func(*Tracker)
		after  func(store toolscache.Indexer) // what happens to the store
		want   []string
		kept   bool // the answer, since the store does not show it yet
	}{
		"created":                           {writes: []func(*Tracker){create("10")}, want: []string{"a 1@10"}, kept: true},
		"created, shown":                    {writes: []func(*Tracker){create("10")}, after: adds(pod("a", "1", "10")), want: []string{"a 1@10"}},
		"created, others wrote":             {writes: []func(*Tracker){create("10")}, after: adds(pod("a", "1", "12")), want: []string{"a 1@12"}},
		"created, others deleted":           {writes: []func(*Tracker){create("10")}, after: passes("11")},
		"created, others deleted and made":  {writes: []func(*Tracker){create("10")}, after: adds(pod("a", "2", "12")), want: []string{"a 2@12"}},
		"created, something else happens":   {writes: []func(*Tracker){create("10")}, after: adds(pod("b", "2", "9")), want: []string{"a 1@10", "b 2@9"}, kept: true},
		"written":                           {before: []*corev1.Pod{pod("a", "1", "9")}, writes: []func(*Tracker){write("10")}, want: []string{"a 1@10"}, kept: true},
		"written twice":                     {before: []*corev1.Pod{pod("a", "1", "9")}, writes: []func(*Tracker){write("10"), write("11")}, want: []string{"a 1@11"}, kept: true},
		"written twice, answers change way": {before: []*corev1.Pod{pod("a", "1", "9")}, writes: []func(*Tracker){write("11"), write("10")}, want: []string{"a 1@11"}, kept: true},
		"written twice, one is shown": {
			before: []*corev1.Pod{pod("a", "1", "9")}, writes: []func(*Tracker){write("10"), write("11")}, after: adds(pod("a", "1", "10")),
			want: []string{"a 1@11"}, kept: true,
		},
		"written, others wrote before":    {before: []*corev1.Pod{pod("a", "1", "8")}, writes: []func(*Tracker){write("10")}, after: adds(pod("a", "1", "9")), want: []string{"a 1@10"}, kept: true},
		"written, others deleted":         {before: []*corev1.Pod{pod("a", "1", "9")}, writes: []func(*Tracker){write("10")}, after: removes(pod("a", "1", "12"))},
		"written in the place of another": {before: []*corev1.Pod{pod("a", "0", "9")}, writes: []func(*Tracker){create("10")}, want: []string{"a 1@10"}, kept: true},
		"deleted":                         {before: []*corev1.Pod{pod("a", "1", "9")}, writes: []func(*Tracker){remove("9")}, want: []string{"a 1@9 x"}, kept: true},
		"deleted, shown terminating": {
			before: []*corev1.Pod{pod("a", "1", "9")}, writes: []func(*Tracker){remove("9")}, after: adds(terminating(pod("a", "1", "10"))), want: []string{"a 1@10 x"},
		},
		"deleted, gone":                 {before: []*corev1.Pod{pod("a", "1", "9")}, writes: []func(*Tracker){remove("9")}, after: removes(pod("a", "1", "10"))},
		"deleted, another in its place": {before: []*corev1.Pod{pod("a", "1", "9")}, writes: []func(*Tracker){remove("9")}, after: adds(pod("a", "2", "12")), want: []string{"a 2@12"}},
		"created and deleted":           {writes: []func(*Tracker){create("10"), remove("10")}, want: []string{"a 1@10 x"}, kept: true},
		"created and deleted, first of it shown": {
			writes: []func(*Tracker){create("10"), remove("10")}, after: adds(pod("a", "1", "10")), want: []string{"a 1@10 x"}, kept: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, store, seen := shownTracker(t)
			for _, p := range test.before {
				require.NoError(t, store.Add(p))
			}
			for _, write := range test.writes {
				write(g)
			}
			if test.after != nil {
				test.after(store)
			}
			assert.Zero(t, g.Wait(t.Context(), workload), "a plan knows what was written")
			byIndex, err := seen.ByIndex("app", "")
			require.NoError(t, err)
			assert.Equal(t, test.want, describe(byIndex))
			assert.Equal(t, test.want, describe(seen.List()))
			one, found, err := seen.GetByKey("ns/a")
			require.NoError(t, err)
			if assert.Equal(t, len(test.want) > 0, found) && found {
				assert.Equal(t, test.want[:1], describe([]any{one}))
			}
			assert.Equal(t, test.kept, len(g.sources[schema.GroupKind{Kind: "Pod"}].answers) > 0)
		})
	}
}

func adds(p *corev1.Pod) func(toolscache.Indexer) { return func(s toolscache.Indexer) { _ = s.Add(p) } }
func removes(p *corev1.Pod) func(toolscache.Indexer) {
	return func(s toolscache.Indexer) { _ = s.Delete(p) }
}
func passes(version string) func(toolscache.Indexer) {
	return func(s toolscache.Indexer) { s.Bookmark(version) }
}

// What the store changes between two reads of it wins over an answer, and nothing that was written is missed.
func TestAnswersAreReadBeforeTheStore(t *testing.T) {
	g, store, seen := shownTracker(t)
	g.Created(workload, pod("a", "1", "10"))
	unseen := g.sources[schema.GroupKind{Kind: "Pod"}].outstanding()
	for _, now := range []*corev1.Pod{pod("a", "1", "10"), pod("a", "1", "12"), pod("a", "2", "12")} {
		require.NoError(t, store.Add(now))
		items := seen.(shown).merge(store.List(), unseen, func(any) bool { return true })
		assert.Equal(t, describe([]any{now}), describe(items))
	}
}

func TestAnswersHaveTheIndexAndTheTrimOfTheStore(t *testing.T) {
	g, store, seen := shownTracker(t)
	g.sources[schema.GroupKind{Kind: "Pod"}].settings.Transform = func(o any) (any, error) {
		o.(*corev1.Pod).Spec.NodeName = "trimmed"
		return o, nil
	}
	was := pod("a", "1", "9")
	was.Labels = map[string]string{"app": "x"}
	require.NoError(t, store.Add(was))
	now := pod("a", "1", "10")
	now.Labels = map[string]string{"app": "y"}
	g.Written(workload, now)
	for app, want := range map[string]int{"x": 0, "y": 1} {
		items, err := seen.ByIndex("app", app)
		require.NoError(t, err)
		require.Len(t, items, want)
		if want == 1 {
			assert.Equal(t, "trimmed", items[0].(*corev1.Pod).Spec.NodeName)
		}
	}
	assert.Empty(t, now.Spec.NodeName, "the answer is somebody else's")
}

// What is not shown from its answer is waited for: parts of objects, objects that the cache does not select, and what
// nobody reads through the tracker.
func TestWhatIsNotShownIsWaitedFor(t *testing.T) {
	part := &metav1.PartialObjectMetadata{ObjectMeta: pod("a", "1", "10").ObjectMeta}
	part.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	g, store, seen := shownTracker(t)
	g.Written(workload, part)
	assert.NotZero(t, g.Wait(t.Context(), workload))
	assert.Empty(t, seen.List())
	require.NoError(t, store.Add(pod("a", "1", "10")))
	assert.Zero(t, g.Wait(t.Context(), workload))

	g.sources[schema.GroupKind{Kind: "Pod"}].settings.Label = labels.SelectorFromSet(labels.Set{"ours": "yes"})
	g.Created(workload, pod("b", "2", "12"))
	assert.NotZero(t, g.Wait(t.Context(), workload))
	assert.Len(t, seen.List(), 1)

	g, other, fakeClock := newTestTracker()
	assert.Equal(t, store, g.Over(store), "a store that the tracker does not know")
	g.Created(workload, pod("a", "1", "10"))
	fakeClock.Step(time.Second)
	assert.NotZero(t, g.Wait(t.Context(), workload))
	assert.Empty(t, other.List())
}

// A pod that has lost the label by which the cache selects is not shown as it was before, nor is it forgotten before the
// store has passed its creation.
func TestAnswersThatTheStoreNoLongerSelectsAreNotShown(t *testing.T) {
	g, store, seen := shownTracker(t)
	g.sources[schema.GroupKind{Kind: "Pod"}].settings.Label = labels.SelectorFromSet(labels.Set{"ours": "yes"})
	made := pod("a", "1", "10")
	made.Labels = map[string]string{"ours": "yes"}
	g.Created(workload, made)
	g.Written(workload, pod("a", "1", "11"))
	assert.Empty(t, seen.List())
	assert.NotZero(t, g.Wait(t.Context(), workload), "the store will show its creation")
	require.NoError(t, store.Add(made))
	assert.NotZero(t, g.Wait(t.Context(), workload), "the store shows it as it was")
	require.NoError(t, store.Delete(pod("a", "1", "11")))
	assert.Zero(t, g.Wait(t.Context(), workload))
}
