package scope

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// observed are the calls of an observer.
type observed struct {
	mu      sync.Mutex
	changed []string
	lists   int
}

func (o *observed) observer() Observer {
	return Observer{
		Changed: func(pod *corev1.Pod) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.changed = append(o.changed, keyOf(pod)+" at "+pod.ResourceVersion)
		},
		Listed: func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.lists++
		},
	}
}

func (o *observed) changes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string{}, o.changed...)
}

func (o *observed) listed() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lists
}

func isRunning(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning }

// givenFilter starts a cache of the running pods of a server.
func givenFilter(t *testing.T, from toolscache.ListerWatcher) (*observed, toolscache.SharedIndexInformer) {
	t.Helper()
	filter, seen := NewFilter(isRunning), &observed{}
	filter.Observe(seen.observer())
	informer := filter.Limit(fastclient.CacheOptions("", nil).NewInformer)(from, &corev1.Pod{}, 0, toolscache.Indexers{})
	go informer.RunWithContext(t.Context())
	require.True(t, toolscache.WaitForCacheSync(t.Context().Done(), informer.HasSynced))
	return seen, informer
}

func TestOnlyChosenPodsAreKept(t *testing.T) {
	s := newServer()
	s.write("shop", "a", corev1.PodRunning)
	s.write("shop", "x", corev1.PodPending)
	seen, informer := givenFilter(t, s.listWatch())
	shows(t, informer, "shop/a")
	assert.Equal(t, 1, seen.listed())
	assert.Empty(t, seen.changes())

	s.write("shop", "b", corev1.PodRunning)
	s.write("shop", "y", corev1.PodPending)
	shows(t, informer, "shop/a", "shop/b")
	reaches(t, s, informer) // the cache is as new as events of others
	assert.Equal(t, []string{"shop/y at 14"}, seen.changes())

	s.write("shop", "a", corev1.PodSucceeded)
	s.write("shop", "y", corev1.PodSucceeded)
	shows(t, informer, "shop/b")
	reaches(t, s, informer)
	assert.Equal(t, []string{"shop/y at 14", "shop/y at 16"}, seen.changes())
}

// A pod that is not chosen any more leaves the cache, and is observed from then on; one that is chosen now joins it.
func TestAPodIsChosenByEachEvent(t *testing.T) {
	s := newServer()
	s.write("shop", "a", corev1.PodRunning)
	seen, informer := givenFilter(t, s.listWatch())
	for range 3 {
		s.write("shop", "a", corev1.PodPending)
		s.write("shop", "b", corev1.PodRunning)
		shows(t, informer, "shop/b")
		s.write("shop", "a", corev1.PodRunning)
		s.write("shop", "b", corev1.PodPending)
		shows(t, informer, "shop/a")
	}
	reaches(t, s, informer)
	assert.Len(t, seen.changes(), 6)
}

// A new leader waits for the pods that the cache keeps, whatever else the server lists.
func TestALeaderWaitsForKeptPods(t *testing.T) {
	s := newServer()
	s.write("shop", "a", corev1.PodRunning)
	s.write("shop", "x", corev1.PodPending)
	_, informer := givenFilter(t, s.listWatch())
	store, ok := informer.GetStore().(interface{ Keeps(o metav1.Object) bool })
	require.True(t, ok)
	assert.True(t, store.Keeps(gen.Pod("a", gen.Namespaced("shop"))))
	assert.False(t, store.Keeps(gen.Pod("x", gen.Namespaced("shop"))))
	s.write("shop", "a", corev1.PodPending)
	s.write("shop", "x", corev1.PodRunning)
	shows(t, informer, "shop/x")
	assert.False(t, store.Keeps(gen.Pod("a", gen.Namespaced("shop"))))
	assert.True(t, store.Keeps(gen.Pod("x", gen.Namespaced("shop"))))
}

// A watch that lists begins with all pods in any order, and ends the list with a mark. When a watch breaks off, the next one
// goes on after the last event, also when it was one of a pod that is not kept.
func TestWatchesThatList(t *testing.T) {
	var mu sync.Mutex
	var asked []metav1.ListOptions
	watches := make(chan *watch.FakeWatcher, 2)
	filter, seen := NewFilter(isRunning), &observed{}
	filter.Observe(seen.observer())
	informer := filter.Limit(fastclient.CacheOptions("", nil).NewInformer)(&toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			t.Error("the server was asked for a list")
			return &corev1.PodList{}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			mu.Lock()
			defer mu.Unlock()
			w := watch.NewFake()
			asked = append(asked, o)
			watches <- w
			return w, nil
		},
	}, &corev1.Pod{}, 0, toolscache.Indexers{})
	go informer.RunWithContext(t.Context())
	pod := func(name string, version int, phase corev1.PodPhase) *corev1.Pod {
		made := gen.Pod(name, gen.Namespaced("shop"))
		made.ResourceVersion, made.Status.Phase = strconv.Itoa(version), phase
		return made
	}
	first := <-watches
	first.Add(pod("x", 9, corev1.PodPending))
	first.Add(pod("a", 3, corev1.PodRunning))
	end := pod("", 12, "")
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	first.Action(watch.Bookmark, end)
	require.True(t, toolscache.WaitForCacheSync(t.Context().Done(), informer.HasSynced))
	shows(t, informer, "shop/a")
	assert.Equal(t, 1, seen.listed())
	assert.Empty(t, seen.changes())

	forged := pod("x", 13, corev1.PodPending)
	forged.Annotations = end.Annotations // by a user of the pod
	first.Modify(forged)
	first.Modify(pod("x", 14, corev1.PodPending))
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, "14", informer.LastSyncResourceVersion()) })
	assert.Equal(t, 1, seen.listed())
	assert.Equal(t, []string{"shop/x at 13", "shop/x at 14"}, seen.changes())
	first.Stop()
	second := <-watches
	second.Delete(pod("a", 15, corev1.PodRunning))
	await.Until(t, func(check *assert.CollectT) { assert.Empty(check, informer.GetStore().ListKeys()) })
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, asked, 2)
	assert.Equal(t, "14", asked[1].ResourceVersion)
	assert.Nil(t, asked[1].SendInitialEvents)
}

// A watch ends at once when its receiver stops, whatever it has to pass on.
func TestAStoppedWatchEnds(t *testing.T) {
	inner := watch.NewFakeWithChanSize(2, false)
	inner.Add(gen.Pod("a"))
	inner.Add(gen.Pod("b"))
	from := &toolscache.ListWatch{
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return inner, nil },
	}
	w, err := NewFilter(isRunning).watch(t.Context(), from, metav1.ListOptions{})
	require.NoError(t, err)
	w.Stop()
	await.Until(t, func(check *assert.CollectT) { assert.True(check, inner.IsStopped()) })
}
