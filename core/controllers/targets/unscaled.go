package targets

import (
	"context"
	"fmt"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wanted are the fields with the number of wanted pods in objects without a scale subresource; the first one counts.
// DaemonSets learn the number from nodes, so that it changes without an edit.
func wanted() [][]string {
	return [][]string{{"status", "desiredNumberScheduled"}, {"spec", "replicas"}, {"spec", "parallelism"}}
}

// Unscaled returns how many pods a workload without a scale subresource wants, at most ten seconds ago:
// status.desiredNumberScheduled, spec.replicas or spec.parallelism, whichever comes first. The error is ErrNoScale if it
// has none of these.
func (r *Reader) Unscaled(ctx context.Context, workload *metav1.PartialObjectMetadata) (int32, error) {
	if known, ok := r.unscaled.Get(workload.UID); ok {
		return known.(counted).n, known.(counted).err
	}
	return ask(ctx, r.patience, &r.asking, "unscaled/"+string(workload.UID), func(ctx context.Context) (int32, error) {
		n, err := r.askUnscaled(ctx, workload)
		err = r.patience.failed(ctx, "unscaled/"+string(workload.UID), err)
		r.unscaled.Add(workload.UID, counted{n, err}, r.patience.life(err, retryInterval))
		return n, err
	})
}

// counted is a cached answer about a workload without a scale.
type counted struct {
	n   int32
	err error
}

func (r *Reader) askUnscaled(ctx context.Context, workload *metav1.PartialObjectMetadata) (int32, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(workload.GroupVersionKind())
	fail := func(err error) (int32, error) {
		return 0, fmt.Errorf("read the number of pods of %s %s/%s: %w", workload.Kind, workload.Namespace, workload.Name, err)
	}
	if err := r.options.Live.Get(ctx, client.ObjectKeyFromObject(workload), object); err != nil {
		return fail(err)
	}
	for _, path := range wanted() {
		n, found, err := unstructured.NestedInt64(object.Object, path...)
		if found && err == nil && n >= 0 {
			return int32(min(n, math.MaxInt32)), nil //nolint:gosec // it is bounded
		}
	}
	return fail(ErrNoScale)
}
