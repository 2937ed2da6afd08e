package orphans

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Interval is how often the server is asked about a workload that does not change.
const Interval = 10 * time.Minute

// Finder is safe for concurrent use.
type Finder struct {
	cached Cached
	live   client.Reader
	label  string

	mu    sync.Mutex
	asked map[types.NamespacedName]question
}

type question struct {
	uid        types.UID
	generation int64
	at         time.Time
	// put off says that the server was not asked: the workload lacked nothing.
	putOff bool
}

// Cached lists the pods without a controller that the cache has of a namespace. They must not be changed.
type Cached func(ctx context.Context, namespace string) ([]*corev1.Pod, error)

// New makes a finder. The label is the one by whose presence the cache selects pods; live reads from the server.
func New(cached Cached, live client.Reader, label string) *Finder {
	return &Finder{cached: cached, live: live, label: label, asked: map[types.NamespacedName]question{}}
}

// Search says whose pods are looked for.
type Search struct {
	// Owner is the workload. One that is being deleted takes no pod.
	Owner client.Object
	// Selector is the workload's. One that selects every pod, or none, has no orphans.
	Selector *metav1.LabelSelector
	// Wanted says of a pod without a controller whether the workload takes it; nil takes all.
	Wanted func(*corev1.Pod) bool
	// Complete says that the cache shows as many pods as the workload wants and as its status tells of, so
	// that nothing is done for want of knowing more: the first question then waits for up to an Interval.
	Complete bool
}

// IsComplete says that a workload has as many pods as it wants, where that is known, and that its status tells of
// its present generation and of no other pods. It is made for Search.Complete.
func IsComplete(owner metav1.Object, pods int, wanted *int32, counted int32, observed int64) bool {
	n := int32(pods)
	return wanted != nil && *wanted == n && counted == n && observed == owner.GetGeneration()
}

// Find returns the pods that could be the workload's: wanted ones without a controller, and its own without
// the label. What the server told of is told again until it is in the cache.
func (f *Finder) Find(ctx context.Context, s Search, now time.Time) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(s.Selector)
	if err != nil || s.Selector == nil || selector.Empty() || s.Owner.GetDeletionTimestamp() != nil {
		return nil, nil //nolint:nilerr // a selector that selects nothing has no orphans; the plan reports it
	}
	found, err := f.look(ctx, s, selector)
	if err != nil || !f.isDue(s, now) {
		return found, err
	}
	unlabelled, err := f.ask(ctx, s, selector)
	if err != nil {
		return nil, err
	}
	if len(unlabelled) == 0 {
		f.remember(s, now, false)
	}
	return append(found, unlabelled...), nil
}

// isDue says whether the server is to be asked now.
func (f *Finder) isDue(s Search, now time.Time) bool {
	f.mu.Lock()
	last, known := f.asked[client.ObjectKeyFromObject(s.Owner)]
	f.mu.Unlock()
	switch {
	case known && last.uid == s.Owner.GetUID() && last.generation == s.Owner.GetGeneration():
		return now.Sub(last.at) >= Interval || last.putOff && !s.Complete
	case known || !s.Complete:
		return true
	}
	f.remember(s, now.Add(-ahead(s.Owner.GetUID())), true)
	return false
}

// ahead spreads the first questions about many workloads over an Interval.
func ahead(uid types.UID) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid)) // the hash never returns an error
	return time.Duration(h.Sum64() % uint64(Interval))
}

func (f *Finder) remember(s Search, at time.Time, putOff bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[client.ObjectKeyFromObject(s.Owner)] = question{s.Owner.GetUID(), s.Owner.GetGeneration(), at, putOff}
}

// look finds the pods with the label.
func (f *Finder) look(ctx context.Context, s Search, selector labels.Selector) ([]*corev1.Pod, error) {
	pods, err := f.cached(ctx, s.Owner.GetNamespace())
	if err != nil {
		return nil, fmt.Errorf("list pods without a controller: %w", err)
	}
	var found []*corev1.Pod
	for _, pod := range pods {
		if selector.Matches(labels.Set(pod.Labels)) && f.isLost(pod, s) {
			found = append(found, pod)
		}
	}
	return found, nil
}

// ask finds the pods without the label.
func (f *Finder) ask(ctx context.Context, s Search, selector labels.Selector) ([]*corev1.Pod, error) {
	unlabelled, err := labels.NewRequirement(f.label, selection.DoesNotExist, nil)
	if err != nil {
		return nil, fmt.Errorf("select pods without label %s: %w", f.label, err)
	}
	list := &corev1.PodList{}
	err = f.live.List(ctx, list, client.InNamespace(s.Owner.GetNamespace()), client.MatchingLabelsSelector{Selector: selector.Add(*unlabelled)})
	if err != nil {
		return nil, fmt.Errorf("list pods by selector: %w", err)
	}
	var found []*corev1.Pod
	for i := range list.Items {
		if f.isLost(&list.Items[i], s) {
			found = append(found, &list.Items[i])
		}
	}
	return found, nil
}

func (f *Finder) isLost(pod *corev1.Pod, s Search) bool {
	controller := metav1.GetControllerOfNoCopy(pod)
	switch {
	case pod.DeletionTimestamp != nil:
		return false
	case controller == nil:
		return s.Wanted == nil || s.Wanted(pod)
	}
	return controller.UID == s.Owner.GetUID()
}

// Doubt lets the next Find ask the server about the workload, whatever its pods are.
func (f *Finder) Doubt(name types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[name] = question{}
}

// Forget drops what is remembered of a workload that is gone.
func (f *Finder) Forget(name types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.asked, name)
}
