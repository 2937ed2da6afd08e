package scale

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// parallel is the number of bare requests at a time, the same as in our executor.
const parallel = 32

// floor sends bare requests, the lower bound for any controller. The pods are not scheduled.
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

// dead measures the creation of others' pods while the operator does not run. It must equal floor, because the operator
// is not involved.
func (b *bench) dead(ctx context.Context) ([]Row, error) {
	space, err := b.namespace(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.operator.Kill(); err != nil {
		return nil, err
	}
	pods := b.kube.CoreV1().Pods(space)
	row, err := b.bare(ctx, "bare POST pods, operator dead", func(ctx context.Context, name string) error {
		_, err := pods.Create(ctx, unscheduled(name, podLabels()), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return nil, fmt.Errorf("delete the pods: %w", err)
	}
	return []Row{row}, b.operator.start(ctx)
}

// unscheduled returns a pod that no scheduler handles.
func unscheduled(name string, labels map[string]string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: podSpec(imageBefore)}
	pod.Spec.SchedulerName = "nobody"
	return pod
}

// bare measures do, called once for each name.
func (b *bench) bare(ctx context.Context, what string, do func(ctx context.Context, name string) error) (Row, error) {
	b.tell("%s", what)
	meter, err := startMeter(ctx, []process{b.controllerManager, b.apiServer, b.scheduler, b.database})
	if err != nil {
		return Row{}, err
	}
	took := make([]time.Duration, b.Pods)
	began := time.Now()
	err = forEach(ctx, b.Pods, func(ctx context.Context, i int) error {
		asked := time.Now()
		defer func() { took[i] = time.Since(asked) }()
		return do(ctx, podName(i))
	})
	if err != nil {
		return Row{}, fmt.Errorf("%s: %w", what, err)
	}
	row := Row{
		Load: what,
		Pods: b.Pods,
		Done: time.Since(began).Seconds(),
	}
	row.LastWrite = row.Done
	slices.Sort(took)
	row.Median = milliseconds(took[len(took)/2])
	row.P99 = milliseconds(took[len(took)*99/100])
	row.Costs, err = meter.cost()
	return row, err
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

func podName(i int) string { return fmt.Sprintf("%s-%d", name, i) }

// forEach calls do for each number below n, parallel at a time.
func forEach(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error { return do(limited, i) })
	}
	return group.Wait()
}
