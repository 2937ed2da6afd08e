package install

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"

	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/images"
)

// Namespace is where operators run.
const Namespace = "flotilla-system"

// patience is the timeout of kubectl's wait for a Deployment or a DaemonSet.
const patience = "120s"

// Apps pushes versions v1 to v3 of the demo application to the cluster's registry.
func Apps(ctx context.Context, c *cluster.Cluster, out io.Writer) error {
	built, err := images.Apps(ctx, c.Registry(), "v1", "v2", "v3")
	if err != nil {
		return fmt.Errorf("build the demo application: %w", err)
	}
	fmt.Fprintf(out, "pushed %d images of the demo application\n", len(built))
	return nil
}

// Feature builds the images of a feature, for its manager and its agent if it has one, applies its overlay with exactly
// these images, and waits until the workloads of the overlay are available.
func Feature(ctx context.Context, c *cluster.Cluster, feature string, out io.Writer) error {
	fmt.Fprintf(out, "installing %s...\n", feature)
	built, err := images.Managers(ctx, images.Options{
		Registry: c.Registry(), Only: []string{feature}, Platforms: []string{"linux/" + runtime.GOARCH},
	})
	if err != nil {
		return fmt.Errorf("build the images of %s: %w", feature, err)
	}
	manifests, err := Manifests(feature, built...)
	if err != nil {
		return err
	}
	if err := kubectl(ctx, c, manifests, out, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		return fmt.Errorf("apply overlay %s: %w", feature, err)
	}
	running, err := workloads(manifests)
	if err != nil {
		return err
	}
	for _, w := range running {
		if err := kubectl(ctx, c, nil, out, "-n", Namespace, "rollout", "status", w, "--timeout="+patience); err != nil {
			return fmt.Errorf("wait for %s: %w", w, err)
		}
	}
	return nil
}

// kubectl runs kubectl on the cluster. Its output is shown when it fails.
func kubectl(ctx context.Context, c *cluster.Cluster, input []byte, out io.Writer, args ...string) error {
	command := exec.CommandContext(ctx, c.Kubectl(), append([]string{"--kubeconfig", c.Kubeconfig()}, args...)...)
	command.Stdin = bytes.NewReader(input)
	printed, err := command.CombinedOutput()
	if err != nil {
		fmt.Fprintf(out, "%s", printed)
	}
	return err
}
