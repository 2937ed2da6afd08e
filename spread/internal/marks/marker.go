package marks

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

const (
	// seenWithin is how long Mark waits for the label to come back through the watch, and seenEvery how often it looks.
	seenWithin = time.Second
	seenEvery  = 5 * time.Millisecond
)

// Marker marks namespaces.
type Marker struct {
	Writer client.Client
	// Cached returns a namespace from the cache.
	Cached func(ctx context.Context, key types.NamespacedName) (*corev1.Namespace, error)
}

// Mark sets the label of a namespace and returns when watches show it, or after a second: the API server chooses its
// webhooks by a watch of its own. The label is written in any case, as the cache may not know yet that it was removed.
func (m *Marker) Mark(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, v1beta1.NamespaceLabel))
	if err := m.Writer.Patch(ctx, ns, patch); err != nil {
		return fmt.Errorf("set label %s of namespace %s: %w", v1beta1.NamespaceLabel, name, err)
	}
	_ = wait.PollUntilContextTimeout(ctx, seenEvery, seenWithin, true, func(ctx context.Context) (bool, error) {
		seen, unknown := m.Cached(ctx, types.NamespacedName{Name: name})
		return unknown != nil || isMarked(seen), nil // an operator for one namespace does not see others
	})
	return nil
}

func isMarked(ns *corev1.Namespace) bool { return ns.Labels[v1beta1.NamespaceLabel] == "true" }
