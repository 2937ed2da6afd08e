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
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pods are the pods of a namespace at one instant, by UID.
type Pods map[types.UID]*corev1.Pod

// Always watches the pods of the namespace until the returned function is called and checks every state that a watch
// shows. That function fails the test with all errors of the check.
func (w World) Always(t *testing.T, namespace string, check func(Pods) error) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	list := &corev1.PodList{}
	require.NoError(t, w.Client.List(ctx, list, client.InNamespace(namespace)))
	pods := Pods{}
	for i := range list.Items {
		pods[list.Items[i].UID] = &list.Items[i]
	}
	from := &client.ListOptions{Namespace: namespace, Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	watcher, err := w.Client.Watch(ctx, &corev1.PodList{}, from)
	require.NoError(t, err)
	var faults []string
	var wait sync.WaitGroup
	wait.Go(func() {
		for event := range watcher.ResultChan() {
			o, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			if event.Type == watch.Deleted {
				delete(pods, o.UID)
			} else {
				pods[o.UID] = o
			}
			if err := check(pods); err != nil {
				faults = append(faults, fmt.Sprintf("%s %s (resourceVersion %s): %v", event.Type, o.Name, o.ResourceVersion, err))
			}
		}
	})
	return func() {
		t.Helper()
		watcher.Stop()
		cancel()
		wait.Wait()
		require.Empty(t, faults)
	}
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
