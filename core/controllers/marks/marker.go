package marks

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// seenWithin is how long Mark waits for its write to come back through the watch, and seenEvery how often it looks.
	seenWithin = time.Second
	seenEvery  = 5 * time.Millisecond
)

// Marker marks namespaces that are to have an object.
type Marker struct {
	Label  Label
	Writer client.Client
	// Cached returns a namespace from the cache.
	Cached func(ctx context.Context, key types.NamespacedName) (*corev1.Namespace, error)
	Clock  clock.PassiveClock
}

// Mark sets the label of a namespace, notes when, and returns when watches show it, or after a second: the API server
// chooses its webhooks by a watch of its own. All is written in any case, as the cache may not know yet that the label was
// removed, and the replica that is about to remove it learns of the admission by its conflict.
func (m *Marker) Mark(ctx context.Context, name string) error {
	now := m.Clock.Now().UTC()
	body, err := json.Marshal(m.Label.metadata("true", now.Format(time.RFC3339Nano)))
	if err != nil {
		return fmt.Errorf("encode the mark of namespace %s: %w", name, err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := m.Writer.Patch(ctx, ns, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("set label %s of namespace %s: %w", m.Label, name, err)
	}
	_ = wait.PollUntilContextTimeout(ctx, seenEvery, seenWithin, true, func(ctx context.Context) (bool, error) {
		seen, err := m.Cached(ctx, types.NamespacedName{Name: name})
		if err != nil { // an operator for one namespace does not see others: there is nothing to wait for
			return false, err
		}
		return m.Label.IsOn(seen) && !m.Label.Admitted(seen).Before(now), nil
	})
	return nil
}
