package cloneset

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// orphanInterval is how often the server is asked for pods that the cache cannot show.
const orphanInterval = 10 * time.Minute

// orphans looks for pods that a set should have in its hands and the cache does not show: without a
// controller though the selector matches, or without the label by which the cache selects. It asks
// the server when it first meets the set, when the set's spec changes and every ten minutes.
type orphans struct {
	live client.Reader

	mu    sync.Mutex
	asked map[types.NamespacedName]question
}

type question struct {
	uid        types.UID
	generation int64
	at         time.Time
}

func (f *orphans) of(ctx context.Context, set *v1beta1.CloneSet, now time.Time) ([]*corev1.Pod, error) {
	f.mu.Lock()
	last, known := f.asked[client.ObjectKeyFromObject(set)]
	f.mu.Unlock()
	if known && last.uid == set.UID && last.generation == set.Generation && now.Sub(last.at) < orphanInterval || set.DeletionTimestamp != nil {
		return nil, nil
	}
	found, err := f.ask(ctx, set)
	if err != nil {
		return nil, err
	}
	// What was found is asked for again, until it is in the cache.
	if len(found) == 0 {
		f.mu.Lock()
		f.asked[client.ObjectKeyFromObject(set)] = question{set.UID, set.Generation, now}
		f.mu.Unlock()
	}
	return found, nil
}

func (f *orphans) ask(ctx context.Context, set *v1beta1.CloneSet) ([]*corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || selector.Empty() {
		return nil, nil //nolint:nilerr // a selector that selects nothing has no orphans; the plan reports it
	}
	list := &corev1.PodList{}
	if err := f.live.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list pods by selector: %w", err)
	}
	var found []*corev1.Pod
	for i := range list.Items {
		o := &list.Items[i]
		controller := metav1.GetControllerOfNoCopy(o)
		unlabelled := controller != nil && controller.UID == set.UID && o.Labels[contract.InstanceIDLabel] == ""
		if o.DeletionTimestamp == nil && (controller == nil || unlabelled) {
			found = append(found, o)
		}
	}
	return found, nil
}

func (f *orphans) forget(name types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.asked, name)
}
