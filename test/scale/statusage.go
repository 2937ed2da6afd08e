package scale

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// statusAge is how far a status lags behind the pods that it counts: what it says was true that long ago.
type statusAge struct {
	left   map[int]time.Time // when so many pods were last ready, but for the number that is now
	pods   int               // ready now
	said   int               // by the status
	oldest time.Duration
}

// begin forgets what was before, but for the numbers of now.
func (a *statusAge) begin() { a.left, a.oldest = map[int]time.Time{}, 0 }

// becomes notes how many pods are ready now.
func (a *statusAge) becomes(pods int, now time.Time) {
	if pods != a.pods && a.left != nil {
		a.left[a.pods] = now
	}
	a.pods = pods
}

// says notes how many the status says are ready. The one before was as old as it is at this moment.
func (a *statusAge) says(ready int, now time.Time) {
	a.oldest = max(a.oldest, a.age(now))
	a.said = ready
}

// age is that of what the status says now. A number of which the watch of pods has not shown yet that it was true is none.
func (a *statusAge) age(now time.Time) time.Duration {
	since, known := a.left[a.said]
	if a.said == a.pods || !known {
		return 0
	}
	return now.Sub(since)
}

// followStatus tells the observer what the status of the workload says until ctx ends.
func (b *bench) followStatus(ctx context.Context, w workload, pods *observed) error {
	gvk, err := apiutil.GVKForObject(w.Object, b.client.Scheme())
	if err != nil {
		return fmt.Errorf("find the kind of the workload: %w", err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	events, err := b.client.Watch(ctx, list, client.InNamespace(w.GetNamespace()), &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, w.GetName()),
	})
	if err != nil {
		return fmt.Errorf("watch the workload: %w", err)
	}
	go func() {
		defer events.Stop()
		for e := range events.ResultChan() {
			if object, ok := e.Object.(*unstructured.Unstructured); ok {
				pods.say(readyIn(object, w.countsReady))
			}
		}
	}()
	return nil
}

// readyIn is what a field of the status says, 0 where it is absent.
func readyIn(object *unstructured.Unstructured, field string) int {
	n, _, _ := unstructured.NestedInt64(object.Object, strings.Split(field, ".")...)
	return int(n)
}

// say notes how many pods the status says are ready.
func (o *observed) say(ready int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status.says(ready, o.now())
}

// oldestStatus is the greatest age that the status reached.
func (o *observed) oldestStatus() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(o.status.oldest, o.status.age(o.now()))
}
