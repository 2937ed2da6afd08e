package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tooManyStarts is the number of starts of a process before readiness at which the cluster counts as failed.
const tooManyStarts = 5

// step is one thing to wait for.
type step struct {
	what  string
	check func(context.Context) error // why it has not happened yet, nil if it has
}

// awaitReady waits for one step after the other, and reports the time of each since the start.
func (c *Cluster) awaitReady(ctx context.Context, options Options) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	steps := []step{{"API server", c.apiServerReady}}
	if !c.state.Simulated {
		steps = append(steps,
			step{"storage class", func(ctx context.Context) error { return createStorageClass(ctx, c.client) }},
			step{"sandbox image", c.pushSandbox})
		for _, node := range c.Nodes() {
			steps = append(steps, step{"node " + node.Name(), func(ctx context.Context) error {
				return node.ready(ctx, time.Time{})
			}})
		}
	}
	steps = append(steps, step{"default service account", c.defaultAccount})
	for _, s := range steps {
		if err := c.await(ctx, s); err != nil {
			return err
		}
		fmt.Fprintf(options.Out, "%s ready after %s\n", s.what, seconds(began))
	}
	return nil
}

// await polls one step. It fails early if a process keeps failing.
func (c *Cluster) await(ctx context.Context, s step) error {
	for {
		err := s.check(ctx)
		if err == nil {
			return nil
		}
		if failing := c.failingProcess(); failing != nil {
			return fmt.Errorf("%s is not ready: %s keeps failing: %s%s", s.what, failing.Name, failing.LastEnd,
				logHint(c.state.layout().log(failing.Name)))
		}
		if !pause(ctx, 2*probeInterval) {
			return fmt.Errorf("%s is not ready: %w (logs: %s)", s.what,
				errors.Join(err, context.Cause(ctx)), c.state.layout().path("log"))
		}
	}
}

func (c *Cluster) failingProcess() *Record {
	for _, record := range c.records() {
		if record.Starts > tooManyStarts && record.LastEnd != "" {
			return &record
		}
	}
	return nil
}

func (c *Cluster) apiServerReady(ctx context.Context) error {
	return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

func (c *Cluster) defaultAccount(ctx context.Context) error {
	_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	return err
}

func (c *Cluster) pushSandbox(ctx context.Context) error {
	image, err := staticImage(c.state.SandboxProgram)
	if err != nil {
		return fmt.Errorf("make the sandbox image: %w", err)
	}
	return c.PushImage(ctx, sandboxImage, image)
}

// ready returns why a node is not ready yet. The Node object stays Ready for some time after a crash, so the kubelet
// must also answer, and must have renewed its Lease since the boot.
func (n Node) ready(ctx context.Context, booted time.Time) error {
	node, err := n.cluster.client.CoreV1().Nodes().Get(ctx, n.Name(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if condition := readyCondition(node); condition.Status != corev1.ConditionTrue {
		return fmt.Errorf("node %s: %s", n.Name(), condition.Message)
	}
	if err := n.reportedSince(ctx, booted); err != nil {
		return err
	}
	result := n.cluster.client.CoreV1().RESTClient().Get().
		Resource("nodes").Name(n.Name()).SubResource("proxy").Suffix("healthz").Do(ctx)
	if err := result.Error(); err != nil {
		return fmt.Errorf("kubelet of node %s: %w", n.Name(), err)
	}
	return nil
}

// reportedSince checks the node's Lease, which a kubelet renews as soon as it starts. At the first boot of a node there
// is no older report, and the Lease is created later.
func (n Node) reportedSince(ctx context.Context, booted time.Time) error {
	if booted.IsZero() {
		return nil
	}
	lease, err := n.cluster.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, n.Name(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(booted) {
		return fmt.Errorf("node %s has not renewed its lease since it booted", n.Name())
	}
	return nil
}

func readyCondition(node *corev1.Node) corev1.NodeCondition {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition
		}
	}
	return corev1.NodeCondition{Message: "has not reported yet"}
}

// logHint returns the end of a log and the path of the log.
func logHint(path string) string {
	data, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("\n%s\n(log: %s)", lastLines(data, 5), path)
}
