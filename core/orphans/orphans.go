package orphans

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Interval is how often the server is asked about a workload that does not change.
const Interval = 10 * time.Minute

// Finder is safe for concurrent use.
type Finder struct {
	live  client.Reader
	label string

	mu    sync.Mutex
	asked map[types.NamespacedName]question
}

type question struct {
	uid        types.UID
	generation int64
	at         time.Time
}

// New makes a finder that asks through live. The label is the one by whose presence the cache selects
// pods.
func New(live client.Reader, label string) *Finder {
	return &Finder{live: live, label: label, asked: map[types.NamespacedName]question{}}
}

// Search says whose pods are looked for.
type Search struct {
	// Owner is the workload. One that is being deleted takes no pod.
	Owner client.Object
	// Selector is the workload's. One that selects every pod, or none, has no orphans.
	Selector *metav1.LabelSelector
	// Wanted says of a pod without a controller whether the workload takes it; nil takes all.
	Wanted func(*corev1.Pod) bool
}

// Find returns the pods that the cache does not show: wanted ones without a controller, and the
// workload's own without the label. What was found is found again until it is in the cache.
func (f *Finder) Find(ctx context.Context, s Search, now time.Time) ([]*corev1.Pod, error) {
	name, asking := client.ObjectKeyFromObject(s.Owner), question{s.Owner.GetUID(), s.Owner.GetGeneration(), now}
	f.mu.Lock()
	last, known := f.asked[name]
	f.mu.Unlock()
	if known && last.uid == asking.uid && last.generation == asking.generation && now.Sub(last.at) < Interval || s.Owner.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	found, err := f.ask(ctx, s)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		f.mu.Lock()
		f.asked[name] = asking
		f.mu.Unlock()
	}
	return found, nil
}

func (f *Finder) ask(ctx context.Context, s Search) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(s.Selector)
	if err != nil || s.Selector == nil || selector.Empty() {
		return nil, nil //nolint:nilerr // a selector that selects nothing has no orphans; the plan reports it
	}
	list := &corev1.PodList{}
	if err := f.live.List(ctx, list, client.InNamespace(s.Owner.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list pods by selector: %w", err)
	}
	var found []*corev1.Pod
	for i := range list.Items {
		if pod := &list.Items[i]; pod.DeletionTimestamp == nil && f.isLost(pod, s) {
			found = append(found, pod)
		}
	}
	return found, nil
}

func (f *Finder) isLost(pod *corev1.Pod, s Search) bool {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return s.Wanted == nil || s.Wanted(pod)
	}
	return controller.UID == s.Owner.GetUID() && pod.Labels[f.label] == ""
}

// Forget lets the next Find ask the server about the workload.
func (f *Finder) Forget(name types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.asked, name)
}
