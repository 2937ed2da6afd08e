package simnodes

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// measureTick is how often a measurement looks whether it is done.
const measureTick = 2 * time.Millisecond

// Figures are the simulation's own ceiling on one API server, in pods a second.
type Figures struct {
	// Pods is how many pods were used.
	Pods int
	// Created is the rate of bare concurrent POSTs of the pods, nothing else under way.
	Created float64
	// Ready is the rate at which pods that had their node already were made ready, from the start
	// of the simulation, registration and first list included.
	Ready float64
	// Removed is the rate from the request to delete all pods to the last one removed.
	Removed float64
}

// String prints the figures on one line.
func (f Figures) String() string {
	return fmt.Sprintf("%d pods: %.0f/s created, %.0f/s to ready, %.0f/s removed", f.Pods, f.Created, f.Ready, f.Removed)
}

// Measure finds the simulation's own ceiling: it creates pods in the namespace that are assigned
// to the nodes of the options, starts these nodes, and deletes the pods when all are ready. The
// nodes stay registered.
func Measure(ctx context.Context, cfg *rest.Config, namespace string, pods int, options Options) (Figures, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	options, err := options.withDefaults()
	if err != nil {
		return Figures{}, err
	}
	client, err := newClient(cfg)
	if err != nil {
		return Figures{}, fmt.Errorf("measure simulated nodes: %w", err)
	}
	began := options.Clock.Now()
	lap := func() float64 {
		now := options.Clock.Now()
		rate := float64(pods) / now.Sub(began).Seconds()
		began = now
		return rate
	}
	figures := Figures{Pods: pods}
	if err := createBound(ctx, client, namespace, pods, options); err != nil {
		return figures, err
	}
	figures.Created = lap()
	nodes, err := Start(ctx, cfg, options)
	if err != nil {
		return figures, err
	}
	if err := nodes.until(ctx, func(c Counts) bool { return c.Ready >= int64(pods) }); err != nil {
		return figures, fmt.Errorf("wait for %d ready pods: %w", pods, err)
	}
	figures.Ready = lap()
	err = client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: measuredLabel})
	if err != nil {
		return figures, fmt.Errorf("delete the measured pods: %w", err)
	}
	if err := nodes.until(ctx, func(c Counts) bool { return c.Removed >= int64(pods) }); err != nil {
		return figures, fmt.Errorf("wait for %d removed pods: %w", pods, err)
	}
	figures.Removed = lap()
	stop()
	nodes.Wait()
	return figures, nil
}

// measuredLabel marks the pods of a measurement.
const measuredLabel = "simnodes-measure"

func createBound(ctx context.Context, client kubernetes.Interface, namespace string, pods int, options Options) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(options.Workers)
	for i := range pods {
		group.Go(func() error {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: fmt.Sprintf("measured-%d", i), Labels: map[string]string{measuredLabel: "true"},
				},
				Spec: corev1.PodSpec{
					NodeName:                     fmt.Sprintf("%s%d", options.Prefix, i%options.Nodes),
					AutomountServiceAccountToken: new(false),
					Containers:                   []corev1.Container{{Name: "main", Image: "measured:v1"}},
				},
			}
			_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("create pod %s: %w", pod.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// until waits for the counts to satisfy a condition.
func (n *Nodes) until(ctx context.Context, done func(Counts) bool) error {
	ticker := n.options.Clock.NewTicker(measureTick)
	defer ticker.Stop()
	for !done(n.Counts()) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C():
		}
	}
	return nil
}
