package scope

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// server has pods, each of the version at which it was written.
type server struct {
	mu       sync.Mutex
	version  int
	pods     map[string]*corev1.Pod
	watchers []*watch.RaceFreeFakeWatcher
	from     []string // the versions at which watches began
	lists    []string // namespaces that were listed by themselves
	fail     error    // of the next of these lists
}

// write makes or changes a pod, or deletes it if it has ended.
func (s *server) write(namespace, name string, phase corev1.PodPhase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	pod := gen.Pod(name, gen.Namespaced(namespace))
	pod.ResourceVersion, pod.Status.Phase = strconv.Itoa(s.version), phase
	key := namespace + "/" + name
	kind := watch.Modified
	switch {
	case phase == corev1.PodSucceeded:
		kind = watch.Deleted
		delete(s.pods, key)
	case s.pods[key] == nil:
		kind = watch.Added
		fallthrough
	default:
		s.pods[key] = pod
	}
	for _, w := range s.watchers {
		if !w.IsStopped() {
			w.Action(kind, pod.DeepCopy())
		}
	}
}

func versionOf(pod *corev1.Pod) int {
	version, _ := strconv.Atoi(pod.ResourceVersion)
	return version
}

func (s *server) list(namespace string) *corev1.PodList {
	all := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
	for _, pod := range s.pods {
		if namespace == "" || pod.Namespace == namespace {
			all.Items = append(all.Items, *pod.DeepCopy())
		}
	}
	return all
}

func (s *server) listWatch() *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.list(""), nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "", nil) // it cannot list in a watch
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			w := watch.NewRaceFreeFake()
			from, err := strconv.Atoi(o.ResourceVersion)
			if err != nil {
				return nil, err
			}
			var missed []*corev1.Pod
			for _, pod := range s.pods {
				if versionOf(pod) > from {
					missed = append(missed, pod.DeepCopy())
				}
			}
			slices.SortFunc(missed, func(a, b *corev1.Pod) int { return cmp.Compare(versionOf(a), versionOf(b)) })
			for _, pod := range missed {
				w.Modify(pod)
			}
			s.watchers, s.from = append(s.watchers, w), append(s.from, o.ResourceVersion)
			return w, nil
		},
	}
}

// given starts a cache of the pods of a server, at first of the named namespaces.
func given(t *testing.T, s *server, namespaces ...string) (*Scope, toolscache.SharedIndexInformer) {
	t.Helper()
	scope := New(clock.RealClock{})
	scope.From(Source{
		Namespaces: func(context.Context, func(string)) ([]string, error) { return namespaces, nil },
		List: func(_ context.Context, namespace, version string) (*corev1.PodList, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lists = append(s.lists, namespace+" at "+version)
			err := s.fail
			s.fail = nil
			return s.list(namespace), err
		},
	})
	informer := scope.Limit(fastclient.CacheOptions("", nil).NewInformer)(s.listWatch(), &corev1.Pod{}, 0, toolscache.Indexers{})
	go informer.RunWithContext(t.Context())
	require.True(t, toolscache.WaitForCacheSync(t.Context().Done(), informer.HasSynced))
	return scope, informer
}

func shows(t *testing.T, informer toolscache.SharedIndexInformer, want ...string) {
	t.Helper()
	await.Until(t, func(check *assert.CollectT) {
		keys := informer.GetStore().ListKeys()
		slices.Sort(keys)
		assert.Equal(check, want, keys)
	})
}

func reaches(t *testing.T, s *server, informer toolscache.SharedIndexInformer) {
	t.Helper()
	await.Until(t, func(check *assert.CollectT) {
		s.mu.Lock()
		defer s.mu.Unlock()
		assert.Equal(check, strconv.Itoa(s.version), informer.GetStore().LastStoreSyncResourceVersion())
	})
}

func newServer() *server { return &server{version: 10, pods: map[string]*corev1.Pod{}} }

func TestOnlyPodsOfTheNamespacesAreKept(t *testing.T) {
	s := newServer()
	s.write("shop", "a", corev1.PodRunning)
	s.write("other", "x", corev1.PodRunning)
	s.write("late", "l", corev1.PodRunning)
	scope, informer := given(t, s, "shop")
	shows(t, informer, "shop/a")
	await.Until(t, func(check *assert.CollectT) { assert.True(check, scope.Complete("shop")) })
	assert.False(t, scope.Complete("late"))
	keeps, ok := informer.GetStore().(interface{ Keeps(o metav1.Object) bool })
	require.True(t, ok, "a new leader asks what it has to wait for")
	assert.True(t, keeps.Keeps(gen.Pod("a", gen.Namespaced("shop"))))
	assert.False(t, keeps.Keeps(gen.Pod("l", gen.Namespaced("late"))))
	s.write("shop", "b", corev1.PodRunning)
	s.write("other", "y", corev1.PodRunning)
	s.write("shop", "a", corev1.PodSucceeded)
	shows(t, informer, "shop/b")
	s.write("other", "x", corev1.PodSucceeded)
	reaches(t, s, informer) // the cache is as new as events of others

	scope.Add("late")
	scope.Add("late")
	await.Until(t, func(check *assert.CollectT) { assert.True(check, scope.Complete("late")) })
	shows(t, informer, "late/l", "shop/b")
	s.write("late", "m", corev1.PodRunning)
	s.write("late", "l", corev1.PodSucceeded)
	shows(t, informer, "late/m", "shop/b")
	scope.Add("empty")
	await.Until(t, func(check *assert.CollectT) { assert.True(check, scope.Complete("empty")) })
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Len(t, s.lists, 2)
}

// A watch that ends goes on where the events were passed on, although older pods of a new namespace came last.
func TestAWatchGoesOnWhereItWas(t *testing.T) {
	s := newServer()
	s.write("late", "l", corev1.PodRunning)
	s.write("shop", "a", corev1.PodRunning)
	scope, informer := given(t, s, "shop")
	s.write("shop", "b", corev1.PodRunning)
	shows(t, informer, "shop/a", "shop/b")
	scope.Add("late")
	await.Until(t, func(check *assert.CollectT) { assert.True(check, scope.Complete("late")) })
	s.mu.Lock()
	at, last := strconv.Itoa(s.version), s.watchers[len(s.watchers)-1]
	s.mu.Unlock()
	last.Stop()
	await.Until(t, func(check *assert.CollectT) {
		s.mu.Lock()
		defer s.mu.Unlock()
		assert.Greater(check, len(s.from), 1)
		assert.Equal(check, at, s.from[len(s.from)-1])
	})
	s.write("late", "m", corev1.PodRunning)
	shows(t, informer, "late/l", "late/m", "shop/a", "shop/b")
}

// A namespace that cannot be listed is tried again; one whose version the server does not know any more is listed with
// all others.
func TestANamespaceThatCannotBeListed(t *testing.T) {
	for name, err := range map[string]error{
		"no answer": errors.New("no answer"), "too old": apierrors.NewResourceExpired("too old"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			s.write("late", "l", corev1.PodRunning)
			s.write("shop", "a", corev1.PodRunning)
			s.fail = err
			scope, informer := given(t, s, "shop")
			scope.Add("late")
			assert.False(t, scope.Complete("late"))
			await.Until(t, func(check *assert.CollectT) { assert.True(check, scope.Complete("late")) })
			shows(t, informer, "late/l", "shop/a")
			s.write("late", "m", corev1.PodRunning)
			shows(t, informer, "late/l", "late/m", "shop/a")
		})
	}
}

// Namespaces are added while pods come and go: in the end the cache has what the server has of them.
func TestTheCacheEndsUpWithWhatThereIs(t *testing.T) {
	s := newServer()
	scope, informer := given(t, s)
	var all sync.WaitGroup
	for n := range 4 {
		namespace := fmt.Sprint("n", n)
		all.Go(func() {
			for i := range 24 { // all of them fit into the channel of a fake watch
				s.write(namespace, fmt.Sprint("p", i%5), []corev1.PodPhase{corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded}[i%7%3])
				if i == 5*n {
					scope.Add(namespace)
				}
				<-time.After(time.Millisecond)
			}
		})
	}
	all.Wait()
	reaches(t, s, informer)
	for n := range 4 {
		await.Until(t, func(check *assert.CollectT) { assert.True(check, scope.Complete(fmt.Sprint("n", n))) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Len(t, informer.GetStore().List(), len(s.pods))
	for key, pod := range s.pods {
		item, found, err := informer.GetStore().GetByKey(key)
		require.NoError(t, err)
		require.True(t, found, key)
		assert.Equal(t, pod.ResourceVersion, item.(*corev1.Pod).ResourceVersion)
	}
}
