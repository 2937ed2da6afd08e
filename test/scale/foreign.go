package scale

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// foreign returns a database with pods of others, empty where none are asked for. They have no node and are written
// only once, when they are created, so that the difference to a run without them is the cost of their existence.
func (o Options) foreign(ctx context.Context) (database string, err error) {
	if o.Foreign == 0 {
		return "", nil
	}
	labels := map[string]string{"app": "foreign"}
	return o.kept(ctx, "foreign", []any{o.Foreign, unscheduled("", labels)}, func(ctx context.Context, b *bench) error {
		space, err := b.namespace(ctx)
		if err != nil {
			return err
		}
		pods := b.kube.CoreV1().Pods(space)
		return forEach(ctx, o.Foreign, func(ctx context.Context, i int) error {
			_, err := pods.Create(ctx, unscheduled(podName(i), labels), metav1.CreateOptions{})
			return err
		})
	})
}

// idle measures the cost of the operator while there is nothing to do.
func (b *bench) idle(ctx context.Context) ([]Row, error) {
	b.tell("idle")
	row := Row{
		Load:       "idle",
		Controller: b.operator.name,
		Done:       idleTime.Seconds(),
	}
	if err := pass(ctx, startTime); err != nil {
		return nil, err
	}
	if err := b.audit.Skip(); err != nil {
		return nil, err
	}
	meter, err := startMeter(ctx, b.processes())
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := pass(ctx, idleTime); err != nil {
		return nil, err
	}
	if row.Costs, err = meter.cost(); err != nil {
		return nil, err
	}
	if err := b.count(&row, began, b.ofOperator("")); err != nil {
		return nil, err
	}
	return []Row{row}, nil
}

// pass waits while time passes.
func pass(ctx context.Context, long time.Duration) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("idle: %w", ctx.Err())
	case <-time.After(long):
		return nil
	}
}
