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
		_, err := pods.Create(ctx, unscheduled(name, podLabels()), metav1.CreateOptions{})
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

// unscheduled is a pod that no scheduler takes.
func unscheduled(name string, labels map[string]string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: podSpec(imageBefore)}
	pod.Spec.SchedulerName = "nobody"
	return pod
}

// bare measures one thing that is done for each name.
func (b *bench) bare(ctx context.Context, what string, do func(ctx context.Context, name string) error) (Row, error) {
	b.tell("%s", what)
	meter, err := startMeter(b.processes())
	if err != nil {
		return Row{}, err
	}
	began := time.Now()
	if err := forEach(ctx, b.Pods, do); err != nil {
		return Row{}, fmt.Errorf("%s: %w", what, err)
	}
	took := time.Since(began).Seconds()
	costs, err := meter.cost()
	return Row{Load: what, Pods: b.Pods, LastWrite: took, Done: took, Costs: costs}, err
}

// forEach does one thing for each of n names, many at a time.
func forEach(ctx context.Context, n int, do func(ctx context.Context, name string) error) error {
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error { return do(limited, fmt.Sprintf("web-%d", i)) })
	}
	return group.Wait()
}
