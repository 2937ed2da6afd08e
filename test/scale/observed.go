package scale

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// observed are the pods of a namespace as a watch shows them, and when it did: all times are those of the watch, so that they
// compare, whoever has made the pods.
type observed struct {
	cache.Store
	now func() time.Time

	mu      sync.Mutex
	created map[types.UID]time.Time
	ready   map[types.UID]time.Duration // from its creation until a pod was first ready
	serving map[types.UID]bool

	since   time.Time // when the use of the budget is counted from
	last    time.Time // change of the number of pods that serve
	wanted  int       // pods that should serve
	missing float64   // pod seconds
	most    int       // pods that were missing at a time

	status statusAge
}

func newObserved(now func() time.Time) *observed {
	return &observed{
		now:     now,
		created: map[types.UID]time.Time{},
		ready:   map[types.UID]time.Duration{},
		serving: map[types.UID]bool{},
	}
}

// handler follows the watch.
func (o *observed) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				o.make(pod.UID)
				o.see(pod, isReady(pod))
			}
		},
		UpdateFunc: func(_, object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				o.see(pod, isReady(pod))
			}
		},
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				o.see(pod, false)
			}
		},
	}
}

func (o *observed) make(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.created[uid] = o.now()
}

func (o *observed) see(pod *corev1.Pod, serves bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	o.count(now)
	defer func() { o.status.becomes(len(o.serving), now) }()
	if !serves {
		delete(o.serving, pod.UID)
		o.most = max(o.most, o.out())
		return
	}
	o.serving[pod.UID] = true
	began, made := o.created[pod.UID]
	if _, known := o.ready[pod.UID]; made && !known {
		o.ready[pod.UID] = now.Sub(began)
	}
}

// count adds the time since the last change to what was missing.
func (o *observed) count(now time.Time) {
	o.missing += float64(o.out()) * now.Sub(o.last).Seconds()
	o.last = now
}

// out returns how many pods are missing.
func (o *observed) out() int { return max(o.wanted-len(o.serving), 0) }

// begin forgets what was seen before, but for the pods that serve, of which so many should.
func (o *observed) begin(wanted int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	o.since = now
	o.last = now
	o.wanted = wanted
	o.missing = 0
	o.most = 0
	o.status.begin()
	clear(o.created)
	clear(o.ready)
}

// until waits until a pod is done.
func (o *observed) until(ctx context.Context, key string, done func(*corev1.Pod) bool) error {
	return until(ctx, "pod "+key, func() (bool, error) {
		item, found, err := o.GetByKey(key)
		pod, ok := item.(*corev1.Pod)
		return found && ok && done(pod), err
	})
}

// toReady returns how long pods took from their creation until they were ready: the median, the 90th and the 99th percentile.
func (o *observed) toReady() (median, p90, p99 time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]time.Duration, 0, len(o.ready))
	for _, took := range o.ready {
		all = append(all, took)
	}
	slices.Sort(all)
	return percentile(all, 50), percentile(all, 90), percentile(all, 99)
}

// used returns the share of a budget that was in use on average, and how many pods were missing at most.
func (o *observed) used(budget int) (share float64, most int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count(o.now())
	return o.missing / (o.last.Sub(o.since).Seconds() * float64(budget)), o.most
}
