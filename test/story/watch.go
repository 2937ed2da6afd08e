package story

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pods are the pods of a namespace at one instant, by UID.
type Pods map[types.UID]*corev1.Pod

// Always watches the pods of the namespace until the returned function is called and checks every state that a watch
// shows. That function waits until the watch has shown all that was there when it was called, and fails the test with all
// errors of the check.
func (w World) Always(t *testing.T, namespace string, check func(Pods) error) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	list := &corev1.PodList{}
	require.NoError(t, w.Client.List(ctx, list, client.InNamespace(namespace)))
	from := &client.ListOptions{Namespace: namespace, Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	watcher, err := w.Client.Watch(ctx, &corev1.PodList{}, from)
	require.NoError(t, err)
	s := newShown(list)
	var wait sync.WaitGroup
	wait.Go(func() {
		for event := range watcher.ResultChan() {
			s.take(event, check)
		}
	})
	return func() {
		t.Helper()
		s.catchUp(t, w, namespace)
		faults := s.end()
		watcher.Stop()
		cancel()
		wait.Wait()
		require.Empty(t, faults)
	}
}

// shown is what a watch has shown so far.
type shown struct {
	mu     sync.Mutex
	pods   Pods
	newest string // resource version
	faults []string
	ended  bool
}

func newShown(list *corev1.PodList) *shown {
	s := &shown{pods: Pods{}, newest: list.ResourceVersion}
	for i := range list.Items {
		s.pods[list.Items[i].UID] = &list.Items[i]
	}
	return s
}

// take checks the state after an event.
func (s *shown) take(event watch.Event, check func(Pods) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	o, ok := event.Object.(*corev1.Pod)
	if !ok {
		s.faults = append(s.faults, fmt.Sprintf("%s: %v", event.Type, event.Object))
		return
	}
	s.newest = o.ResourceVersion
	if event.Type == watch.Deleted {
		delete(s.pods, o.UID)
	} else {
		s.pods[o.UID] = o
	}
	if err := check(s.pods); err != nil {
		s.faults = append(s.faults, fmt.Sprintf("%s %s (resourceVersion %s): %v", event.Type, o.Name, o.ResourceVersion, err))
	}
}

// end returns the errors until now. Later events have no effect: a watch that is stopped ends with an error.
func (s *shown) end() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.faults
}

// catchUp waits until the watch has shown all changes until now.
func (s *shown) catchUp(t *testing.T, w World, namespace string) {
	t.Helper()
	list := &corev1.PodList{}
	require.NoError(t, w.Client.List(t.Context(), list, client.InNamespace(namespace)))
	Eventually(t, "the watch of "+namespace, func(context.Context) error { return s.behind(list) })
}

// behind returns an error if the watch has yet to show a change that was made before the list was read.
func (s *shown) behind(list *corev1.PodList) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := map[types.UID]bool{}
	for i := range list.Items {
		o := &list.Items[i]
		there[o.UID] = true
		if isNewer(o.ResourceVersion, s.newest) {
			return fmt.Errorf("it has yet to show resourceVersion %s of pod %s", o.ResourceVersion, o.Name)
		}
	}
	for uid, o := range s.pods {
		if !there[uid] && !isNewer(o.ResourceVersion, list.ResourceVersion) {
			return fmt.Errorf("it has yet to show that pod %s is gone", o.Name)
		}
	}
	return nil
}

// isNewer reports whether resource version a is newer than b.
func isNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

// Ready returns how many of the pods are in service: running, ready and not terminating.
func (p Pods) Ready() int {
	n := 0
	for _, o := range p {
		if o.DeletionTimestamp == nil && IsReady(o) {
			n++
		}
	}
	return n
}

// AtLeastReady checks that n pods are in service in every state.
func AtLeastReady(n int) func(Pods) error {
	return func(pods Pods) error {
		return Want(pods.Ready() >= n, "%d pods are ready, at least %d must be", pods.Ready(), n)
	}
}
