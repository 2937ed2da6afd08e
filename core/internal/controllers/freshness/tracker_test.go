package freshness

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

var workload = types.NamespacedName{Namespace: "ns", Name: "workload"}

// newTestTracker returns a tracker without leader fence over a store of pods that the test fills.
func newTestTracker() (*Tracker, toolscache.Store, *clocktesting.FakeClock) {
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
	fakeClock := clocktesting.NewFakeClock(time.Unix(0, 0))
	g := &Tracker{
		options: Options{Scheme: clientgoscheme.Scheme, Clock: fakeClock},
		sources: map[schema.GroupKind]*source{
			{Kind: "Pod"}: {kind: corev1.SchemeGroupVersion.WithKind("Pod"), store: store},
		},
		fencePassed: make(chan struct{}),
		waiting:     map[types.NamespacedName]*writes{},
	}
	close(g.fencePassed)
	return g, store, fakeClock
}

func pod(name, uid, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

func terminating(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return p
}

func TestWaitEndsWhenTheCacheHasReachedTheWrites(t *testing.T) {
	tests := map[string]struct {
		record func(*Tracker)
		cached []*corev1.Pod // in the order in which the store sees them
		passed string        // version of a bookmark after them
		waits  bool
	}{
		"nothing written":                       {record: func(*Tracker) {}},
		"created, not seen":                     {record: created("10"), waits: true},
		"created, store is older":               {record: created("10"), cached: []*corev1.Pod{pod("b", "2", "9")}, waits: true},
		"created, seen":                         {record: created("10"), cached: []*corev1.Pod{pod("a", "1", "10")}},
		"created, seen in a later version":      {record: created("9"), cached: []*corev1.Pod{pod("a", "1", "10")}},
		"created, never seen, store has passed": {record: created("10"), passed: "10"},
		"versions compare as numbers":           {record: created("10"), passed: "9", waits: true},
		"written, older version seen":           {record: created("10"), cached: []*corev1.Pod{pod("a", "1", "8")}, waits: true},
		"written, successor of the name seen":   {record: created("10"), cached: []*corev1.Pod{pod("a", "2", "12")}},
		"deleted, still seen":                   {record: deleted(), cached: []*corev1.Pod{pod("a", "1", "10")}, passed: "100", waits: true},
		"deleted, seen terminating":             {record: deleted(), cached: []*corev1.Pod{terminating(pod("a", "1", "11"))}},
		"deleted, gone":                         {record: deleted()},
		"deleted, successor of the name seen":   {record: deleted(), cached: []*corev1.Pod{pod("a", "2", "12")}},
		"created and deleted, neither seen": {record: func(g *Tracker) {
			created("10")(g)
			deleted()(g)
		}, waits: true},
		"created and deleted, store has passed": {record: func(g *Tracker) {
			created("10")(g)
			deleted()(g)
		}, passed: "10"},
		"in doubt":                              {record: doubted(), passed: "100", waits: true},
		"in doubt, seen":                        {record: doubted(), cached: []*corev1.Pod{pod("a", "1", "10")}},
		"lost answer, planned version seen":     {record: lost(), cached: []*corev1.Pod{pod("a", "1", "10")}, passed: "100", waits: true},
		"lost answer, older version seen":       {record: lost(), cached: []*corev1.Pod{pod("a", "1", "9")}, waits: true},
		"lost answer, later version seen":       {record: lost(), cached: []*corev1.Pod{pod("a", "1", "11")}},
		"lost answer, gone":                     {record: lost(), passed: "11"},
		"lost answer, not created in the store": {record: lost(), passed: "9", waits: true},
		"kind that nobody reads":                {record: func(g *Tracker) { g.Written(workload, &corev1.Secret{}) }},
		"version without order":                 {record: created("x")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, store, _ := newTestTracker()
			test.record(g)
			for _, p := range test.cached {
				require.NoError(t, store.Add(p))
			}
			if test.passed != "" {
				store.Bookmark(test.passed)
			}
			assert.Equal(t, test.waits, g.Wait(t.Context(), workload) > 0, "pending: %v", g.Pending(workload))
			assert.Equal(t, test.waits, g.Pending(workload) != nil)
		})
	}
}

// No event tells of a write to an object that the store does not hold: it is not waited for, unless the store has the
// object yet.
func TestWritesThatTheStoreDoesNotShowAreNotWaitedFor(t *testing.T) {
	g, store, _ := newTestTracker()
	g.sources[schema.GroupKind{Kind: "Pod"}].settings.Label = labels.SelectorFromSet(labels.Set{"ours": "yes"})
	g.Written(workload, pod("a", "1", "10"))
	assert.Zero(t, g.Wait(t.Context(), workload), "it has lost the label before")
	require.NoError(t, store.Add(pod("a", "1", "9")))
	g.Written(workload, pod("a", "1", "10"))
	assert.NotZero(t, g.Wait(t.Context(), workload), "it has lost the label by the write")
	require.NoError(t, store.Delete(pod("a", "1", "10")))
	assert.Zero(t, g.Wait(t.Context(), workload))
	shown := pod("a", "1", "12")
	shown.Labels = map[string]string{"ours": "yes"}
	g.Written(workload, shown)
	assert.NotZero(t, g.Wait(t.Context(), workload), "it gets the label back by the write")
}

func created(version string) func(*Tracker) {
	return func(g *Tracker) { g.Created(workload, pod("a", "1", version)) }
}

func deleted() func(*Tracker) {
	return func(g *Tracker) { g.Deleted(workload, pod("a", "1", "5")) }
}

func doubted() func(*Tracker) {
	return func(g *Tracker) { g.MaybeCreated(workload, pod("a", "", "")) }
}

func lost() func(*Tracker) {
	return func(g *Tracker) { g.MaybeWritten(workload, pod("a", "1", "10")) }
}

func TestWaitGrowsWithTheAgeOfTheWrites(t *testing.T) {
	g, _, fakeClock := newTestTracker()
	g.Created(workload, pod("a", "1", "10"))
	assert.Equal(t, minWait, g.Wait(t.Context(), workload))
	fakeClock.Step(300 * time.Millisecond)
	assert.Equal(t, 300*time.Millisecond, g.Wait(t.Context(), workload))
	fakeClock.Step(time.Hour)
	assert.Equal(t, maxWait, g.Wait(t.Context(), workload))
}

func TestForgetDropsTheWritesOfOneWorkload(t *testing.T) {
	g, _, _ := newTestTracker()
	other := types.NamespacedName{Namespace: "ns", Name: "other"}
	g.Created(workload, pod("a", "1", "10"))
	g.Created(other, pod("b", "2", "11"))
	g.Forget(workload)
	assert.Zero(t, g.Wait(t.Context(), workload))
	assert.NotZero(t, g.Wait(t.Context(), other))
	assert.Equal(t, []string{"Pod ns/b at 11"}, g.Pending(other))
}

func TestStoreHoldsALiveList(t *testing.T) {
	live := map[string]string{"ns/a": "10", "ns/b": "12"}
	tests := map[string]struct {
		cached []*corev1.Pod
		want   bool
	}{
		"all in their versions":        {cached: []*corev1.Pod{pod("b", "2", "12"), pod("a", "1", "10")}, want: true},
		"one in a later version":       {cached: []*corev1.Pod{pod("b", "2", "12"), pod("a", "1", "11")}, want: true},
		"one missing":                  {cached: []*corev1.Pod{pod("b", "2", "12")}},
		"one in an older version":      {cached: []*corev1.Pod{pod("b", "2", "12"), pod("a", "1", "9")}},
		"one more that is gone":        {cached: []*corev1.Pod{pod("b", "2", "12"), pod("a", "1", "10"), pod("c", "3", "7")}},
		"store as late as the list":    {cached: []*corev1.Pod{pod("c", "3", "20")}, want: true},
		"none, though there are some":  {},
		"one more that is newer still": {cached: []*corev1.Pod{pod("c", "3", "21"), pod("b", "2", "12"), pod("a", "1", "10")}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, store, _ := newTestTracker()
			for _, p := range test.cached {
				require.NoError(t, store.Add(p))
			}
			assert.Equal(t, test.want, g.sources[schema.GroupKind{Kind: "Pod"}].holds(live, "20"))
		})
	}
}

func BenchmarkWait(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		g, store, _ := newTestTracker()
		for i := range n {
			g.Created(workload, pod("pod-"+strconv.Itoa(i), strconv.Itoa(i), strconv.Itoa(1000+i)))
		}
		require.NoError(b, store.Add(pod("pod-0", "0", "500")))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NotZero(b, g.Wait(b.Context(), workload))
			}
		})
	}
}
