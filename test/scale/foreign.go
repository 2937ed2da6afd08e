package scale

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/test/audit"
)

// addForeign fills the cluster with pods of others, which stay until it ends. The operator starts
// after them, so that its first lists meet them too. They have no node: nobody but their creator
// writes them, so that what a run takes more than one without them is the cost of their being there.
func (b *bench) addForeign(ctx context.Context) error {
	if b.Foreign == 0 {
		return nil
	}
	space, err := b.namespace(ctx)
	if err != nil {
		return err
	}
	pods := b.kube.CoreV1().Pods(space)
	began := time.Now()
	err = forEach(ctx, b.Foreign, func(ctx context.Context, name string) error {
		_, err := pods.Create(ctx, unscheduled(name, map[string]string{"app": "foreign"}), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create foreign pods: %w", err)
	}
	b.tell("%d foreign pods took %.0f s", b.Foreign, time.Since(began).Seconds())
	return nil
}

// idle measures what the operator takes while there is nothing to do.
func (b *bench) idle(ctx context.Context) ([]Row, error) {
	b.tell("idle")
	row := Row{Load: "idle", Controller: b.operator.name, Done: idleTime.Seconds()}
	if err := b.audit.Skip(); err != nil {
		return nil, err
	}
	meter, err := startMeter(b.processes())
	if err != nil {
		return nil, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("idle: %w", ctx.Err())
	case <-time.After(idleTime):
	}
	if row.Costs, err = meter.cost(); err != nil {
		return nil, err
	}
	writes, err := b.audit.Read(audit.Request.IsWrite)
	if err != nil {
		return nil, err
	}
	row.account(writes, began, b.operator.name+"/")
	return []Row{row}, nil
}
