package simulate

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// record is what happened to the pods of a namespace.
type record struct {
	InPlace, Recreated, Added, Removed int
	Lowest, Most                       int
	// Order has the pods in the order in which their update in place or their deletion began.
	Order []string
	took  time.Duration
}

// recorder watches the pods of a namespace.
type recorder struct {
	stop  func()
	ended sync.WaitGroup

	pods           map[types.UID]*corev1.Pod
	deleted, added map[types.UID]bool
	inPlace        map[types.UID]bool
	record         record
	began          time.Time
}

// newRecorder records from now on.
func newRecorder(t *testing.T, namespace string) *recorder {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	list := &corev1.PodList{}
	require.NoError(t, world.Client.List(ctx, list, client.InNamespace(namespace)))
	r := &recorder{
		pods: map[types.UID]*corev1.Pod{}, deleted: map[types.UID]bool{}, added: map[types.UID]bool{}, inPlace: map[types.UID]bool{}, began: time.Now(),
	}
	for i := range list.Items {
		r.pods[list.Items[i].UID] = &list.Items[i]
	}
	r.record.Lowest, r.record.Most = r.available(), r.active()
	from := &client.ListOptions{Namespace: namespace, Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
	watcher, err := world.Client.Watch(ctx, &corev1.PodList{}, from)
	require.NoError(t, err)
	r.stop = func() { watcher.Stop(); cancel() }
	r.ended.Go(func() {
		for event := range watcher.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				r.see(event.Type, pod)
			}
		}
	})
	return r
}

// end returns the record.
func (r *recorder) end() record {
	r.stop()
	r.ended.Wait()
	n := &r.record
	n.InPlace = len(r.inPlace)
	n.Recreated = min(len(r.deleted), len(r.added))
	n.Added, n.Removed = len(r.added)-n.Recreated, len(r.deleted)-n.Recreated
	return *n
}

func (r *recorder) see(event watch.EventType, pod *corev1.Pod) {
	old := r.pods[pod.UID]
	switch {
	case old == nil && event != watch.Deleted:
		r.added[pod.UID] = true
	case old == nil:
	case (pod.DeletionTimestamp != nil || event == watch.Deleted) && !r.deleted[pod.UID]:
		r.deleted[pod.UID] = true
		r.record.Order = append(r.record.Order, pod.Name)
	case pod.Labels[contract.RevisionLabel] != old.Labels[contract.RevisionLabel] && !r.inPlace[pod.UID]:
		r.inPlace[pod.UID] = true
		r.record.Order = append(r.record.Order, pod.Name)
	}
	r.pods[pod.UID] = pod
	if event == watch.Deleted {
		delete(r.pods, pod.UID)
	}
	r.record.Lowest, r.record.Most = min(r.record.Lowest, r.available()), max(r.record.Most, r.active())
	r.record.took = time.Since(r.began)
}

func (r *recorder) active() int {
	n := 0
	for _, pod := range r.pods {
		if podstate.Of(pod, time.Now(), 0).Active {
			n++
		}
	}
	return n
}

func (r *recorder) available() int {
	n := 0
	for _, pod := range r.pods {
		if s := podstate.Of(pod, time.Now(), 0); s.Active && s.Available {
			n++
		}
	}
	return n
}
