package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/plan"
)

const (
	// batchTimeout is how long a group of requests may take; the API server waits a little longer.
	batchTimeout = 4 * time.Second
	// attempts is how often a group is written: another replica, or the controller, may have been first.
	attempts = 8
	// behindFor is how long the cache may take to show what was written, and behindEvery how often it is looked at.
	behindFor   = 2 * time.Second
	behindEvery = 20 * time.Millisecond
	// lookups is how many pods are looked up at a time.
	lookups = 10
)

// Keeper keeps the places of subsets. It is safe for concurrent use.
//
// Requests about one spread that come while a write is under way wait for it, and are then served together: N pods cost
// far less than N writes. A write names the version that was counted from, so that of two writers one counts anew.
type Keeper struct {
	// Cached returns a spread from the cache, Live reads the server, Writer writes.
	Cached func(context.Context, types.NamespacedName) (*v1beta1.WorkloadSpread, error)
	Live   client.Reader
	Writer client.Client
	Clock  clock.Clock

	mu     sync.Mutex
	queues map[types.NamespacedName]*queue
}

// queue has the requests about one spread.
type queue struct {
	waiting []*request
	wake    chan struct{}           // tells of a request
	last    *v1beta1.WorkloadSpread // as the server answered to the last write
	written time.Time
}

// request is something to be entered in the books of a spread.
type request struct {
	replicas *int32
	pod      string // to be looked up before, empty for none
	enter    func(b *plan.Books, gone func(pod string) bool)
	counted  func(version string) map[string]int32 // as plan.Books have it; nil of a deletion
	done     chan error
}

// Enter enters a request and returns when it is written, or need not be. enter may be called several times; the last
// call counts. If the spread is gone the error satisfies apierrors.IsNotFound.
func (k *Keeper) Enter(ctx context.Context, key types.NamespacedName, r request) error {
	r.done = make(chan error, 1)
	k.mu.Lock()
	if k.queues == nil {
		k.queues = map[types.NamespacedName]*queue{}
	}
	q, busy := k.queues[key]
	if !busy {
		q = &queue{wake: make(chan struct{}, 1)}
		k.queues[key] = q
	}
	q.waiting = append(q.waiting, &r)
	k.mu.Unlock()
	if !busy {
		go k.serve(context.WithoutCancel(ctx), key, q)
	}
	select {
	case q.wake <- struct{}{}:
	default: // it is told already
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for a place in workload spread %s: %w", key, ctx.Err())
	}
}

// serve serves groups of requests until none waits and the cache shows what was written: the next request counts from
// there.
func (k *Keeper) serve(ctx context.Context, key types.NamespacedName, q *queue) {
	for {
		k.mu.Lock()
		group := q.waiting
		q.waiting = nil
		if len(group) == 0 && !k.isAhead(ctx, key, q) {
			delete(k.queues, key)
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		if len(group) == 0 {
			select {
			case <-q.wake:
			case <-k.Clock.After(behindEvery):
			}
			continue
		}
		err := k.write(ctx, key, q, group)
		for _, r := range group {
			r.done <- err
		}
	}
}

// isAhead reports whether the cache is expected to show what was written, and does not yet.
func (k *Keeper) isAhead(ctx context.Context, key types.NamespacedName, q *queue) bool {
	if q.last == nil || k.Clock.Since(q.written) > behindFor {
		return false
	}
	cached, err := k.Cached(ctx, key)
	return err == nil && newer(cached, q.last) == q.last
}

// write enters a group of requests with one write.
func (k *Keeper) write(ctx context.Context, key types.NamespacedName, q *queue, group []*request) error {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	base, err := k.Cached(ctx, key)
	if apierrors.IsNotFound(err) { // or it is too young for the cache
		base = &v1beta1.WorkloadSpread{}
		err = k.Live.Get(ctx, key, base)
	}
	if err != nil {
		return fmt.Errorf("get workload spread %s: %w", key, err)
	}
	base = newer(base, q.last)
	isLive := false
	pods := &lookup{live: k.Live, namespace: key.Namespace, known: map[string]bool{}}
	for range attempts {
		pods.begin(ctx, base, group)
		after := base.DeepCopy()
		books := plan.Open(after, plan.Limits(after, replicasOf(group)))
		books.Counted = countedBy(group)
		for _, r := range group {
			r.enter(books, func(pod string) bool { return pods.gone(ctx, pod) })
		}
		if ctx.Err() != nil { // what was not answered counts as running: that is nothing to decide by
			return fmt.Errorf("look up the pods of workload spread %s: %w", key, ctx.Err())
		}
		if books.PassedOver() && !isLive { // somebody may have freed a place since
			if base, err = k.read(ctx, key); err != nil {
				return err
			}
			isLive = true
			continue
		}
		if !books.Close() {
			return nil
		}
		err = k.Writer.Status().Patch(ctx, after, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			q.last, q.written = after, k.Clock.Now()
			return nil
		}
		if ctx.Err() != nil || !apierrors.IsConflict(err) && apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
			break
		}
		// Somebody else was first, or the answer is lost: count anew from what the server has.
		written := err
		if base, err = k.read(ctx, key); err != nil {
			return err
		}
		isLive, err = true, written
	}
	return fmt.Errorf("write the places of workload spread %s: %w", key, err)
}

// read reads a spread from the server.
func (k *Keeper) read(ctx context.Context, key types.NamespacedName) (*v1beta1.WorkloadSpread, error) {
	live := &v1beta1.WorkloadSpread{}
	if err := k.Live.Get(ctx, key, live); err != nil {
		return nil, fmt.Errorf("get workload spread %s: %w", key, err)
	}
	return live, nil
}

// replicasOf are the replicas that were read last.
func replicasOf(group []*request) (replicas *int32) {
	for _, r := range group {
		if r.replicas != nil {
			replicas = r.replicas
		}
	}
	return replicas
}

// countedBy is how a request counts pods: all do it alike, but for deletions, which need not.
func countedBy(group []*request) func(version string) map[string]int32 {
	for _, r := range group {
		if r.counted != nil {
			return r.counted
		}
	}
	return nil
}

// newer returns the newer of two versions of an object, of which the second may be nil or of an older object.
func newer(cached, written *v1beta1.WorkloadSpread) *v1beta1.WorkloadSpread {
	if written == nil || written.UID != cached.UID {
		return cached
	}
	if order, err := resourceversion.CompareResourceVersion(written.ResourceVersion, cached.ResourceVersion); err == nil && order > 0 {
		return written
	}
	return cached
}

// lookup remembers which pods do not run any more. That lasts for all attempts of a group; what still ran is asked again.
type lookup struct {
	live      client.Reader
	namespace string
	known     map[string]bool
	leaving   []string // pods that the spread says to be about to go, sorted
}

// begin looks up the pods of requests after the spread was read: one that is active now was counted there.
func (l *lookup) begin(ctx context.Context, base *v1beta1.WorkloadSpread, group []*request) {
	maps.DeleteFunc(l.known, func(_ string, gone bool) bool { return !gone })
	var names []string
	for _, r := range group {
		if r.pod != "" {
			names = append(names, r.pod)
		}
	}
	l.askAll(ctx, names)
	l.leaving = nil
	for _, list := range base.Status.VersionedSubsetStatuses {
		for i := range list {
			l.leaving = slices.AppendSeq(l.leaving, maps.Keys(list[i].DeletingPods))
		}
	}
	slices.Sort(l.leaving)
}

// gone reports whether a pod does not run any more, or is about to end. With it the next ones are looked up that are
// likely to be asked for, as many as can be at a time.
func (l *lookup) gone(ctx context.Context, name string) bool {
	if _, ok := l.known[name]; !ok {
		names := []string{name}
		next, _ := slices.BinarySearch(l.leaving, name)
		for _, other := range l.leaving[next:] {
			if _, ok := l.known[other]; !ok && other != name && len(names) < lookups {
				names = append(names, other)
			}
		}
		l.askAll(ctx, names)
	}
	return l.known[name]
}

// askAll asks the server for the pods of which nothing is known.
func (l *lookup) askAll(ctx context.Context, names []string) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, ok := l.known[name]; return ok })
	answers := make([]bool, len(names))
	slots := make(chan struct{}, lookups)
	var all sync.WaitGroup
	for i := range names {
		slots <- struct{}{}
		all.Go(func() {
			answers[i] = l.ask(ctx, names[i])
			<-slots
		})
	}
	all.Wait()
	for i, name := range names {
		l.known[name] = answers[i]
	}
}

// ask asks the server. A pod of which nothing is known counts as running.
func (l *lookup) ask(ctx context.Context, name string) bool {
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err := l.live.Get(ctx, types.NamespacedName{Namespace: l.namespace, Name: name}, pod)
	return apierrors.IsNotFound(err) || err == nil && pod.DeletionTimestamp != nil
}
