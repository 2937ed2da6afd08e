package scale

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// parallel is how many bare requests are under way at once, as many as our executor has.
const parallel = 32

// floor sends bare requests: what no controller can be faster than. No scheduler takes the pods.
func (b *bench) floor(ctx context.Context) ([]Row, error) {
	space, err := b.namespace(ctx)
	if err != nil {
		return nil, err
	}
	pods := b.kube.CoreV1().Pods(space)
	create, err := b.bare(ctx, "bare POST pods", func(ctx context.Context, name string) error {
		o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: podLabels()}, Spec: podSpec(imageBefore)}
		o.Spec.SchedulerName = "nobody"
		_, err := pods.Create(ctx, o, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	body := []byte(`{"metadata":{"labels":{"state":"patched"}},"status":{"conditions":[{"type":"Patched","status":"True"}]}}`)
	patch, err := b.bare(ctx, "bare PATCH pods/status", func(ctx context.Context, name string) error {
		_, err := pods.Patch(ctx, name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
		return err
	})
	if err != nil {
		return nil, err
	}
	remove, err := b.bare(ctx, "bare DELETE pods", func(ctx context.Context, name string) error {
		return pods.Delete(ctx, name, metav1.DeleteOptions{})
	})
	return []Row{create, patch, remove}, err
}

// bare does one thing for each name, many at a time.
func (b *bench) bare(ctx context.Context, what string, do func(ctx context.Context, name string) error) (Row, error) {
	b.tell("%s", what)
	meter, err := startMeter(b.processes())
	if err != nil {
		return Row{}, err
	}
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	began := time.Now()
	for i := range b.Pods {
		group.Go(func() error { return do(limited, fmt.Sprintf("web-%d", i)) })
	}
	if err := group.Wait(); err != nil {
		return Row{}, fmt.Errorf("%s: %w", what, err)
	}
	took := time.Since(began).Seconds()
	costs, err := meter.cost()
	return Row{Load: what, Pods: b.Pods, LastWrite: took, Done: took, Costs: costs}, err
}
