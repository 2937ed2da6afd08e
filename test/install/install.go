package install

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/flotilla-project/flotilla/kustomize/release/images"
	"github.com/flotilla-project/flotilla/kustomize/release/overlays"

	"github.com/flotilla-project/flotilla/test/cluster"
)

// Namespace is where operators run.
const Namespace = "flotilla-system"

// patience is the timeout of kubectl's wait for a Deployment or a DaemonSet.
const patience = "120s"

// Apps pushes versions v1 to v3 of the demo application to the cluster's registry.
func Apps(ctx context.Context, c *cluster.Cluster, out io.Writer) error {
	return Local(c).Apps(ctx, out)
}

// Feature builds the images of a feature, for its manager and its agent if it has one, applies its overlay with exactly
// these images, and waits until the workloads of the overlay are available.
func Feature(ctx context.Context, c *cluster.Cluster, feature string, out io.Writer) error {
	return Local(c).Feature(ctx, feature, out)
}

// Target is a cluster to install on.
type Target struct {
	// Kubectl is the program, Kubeconfig the value of its variable KUBECONFIG.
	Kubectl, Kubeconfig string
	// Registry is where images are pushed: HOST[:PORT][/PATH].
	Registry string
	// Named means that the cluster pulls images from the registry by its name. Else they are there without one, too.
	Named bool
	// Platforms are those of the nodes, such as "linux/amd64".
	Platforms []string
	// Components are folders of components, such as "spread/config/required". Each is part of its feature's manifests.
	Components []string
	// Label is a label of all objects that are installed, as NAME=VALUE; empty for none.
	Label string
}

// Local returns the target that a local cluster is.
func Local(c *cluster.Cluster) Target {
	return Target{
		Kubectl:    c.Kubectl(),
		Kubeconfig: c.Kubeconfig(),
		Registry:   c.Registry(),
		Platforms:  []string{"linux/" + runtime.GOARCH},
	}
}

// Image returns what pods call the image of a repository, such as "flotilla/demo-app".
func (t Target) Image(repository string) string {
	if t.Named {
		return t.Registry + "/" + repository
	}
	return repository
}

// Command returns a run of kubectl on the cluster.
func (t Target) Command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, t.Kubectl, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+t.Kubeconfig)
	return command
}

// Apps is like the function Apps.
func (t Target) Apps(ctx context.Context, out io.Writer) error {
	built, err := images.AppsTo(ctx, images.Options{Registry: t.Registry, Platforms: t.Platforms}, "v1", "v2", "v3")
	if err != nil {
		return fmt.Errorf("build the demo application: %w", err)
	}
	fmt.Fprintf(out, "pushed %d images of the demo application\n", len(built))
	return nil
}

// Feature is like the function Feature.
func (t Target) Feature(ctx context.Context, feature string, out io.Writer) error {
	fmt.Fprintf(out, "building the images of %s...\n", feature)
	built, err := images.Managers(ctx, images.Options{
		Registry:  t.Registry,
		Only:      []string{feature},
		Platforms: t.Platforms,
	})
	if err != nil {
		return fmt.Errorf("build the images of %s: %w", feature, err)
	}
	fmt.Fprintf(out, "installing %s...\n", feature)
	registry := ""
	if t.Named {
		registry = t.Registry
	}
	others := func(component string) bool { return !strings.HasPrefix(component, feature+"/") }
	components := slices.DeleteFunc(slices.Clone(t.Components), others)
	manifests, err := overlays.Manifests(registry, feature, built, components...)
	if err != nil {
		return err
	}
	if manifests, err = labelled(manifests, t.Label); err != nil {
		return err
	}
	if err := t.kubectl(ctx, manifests, out, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		return fmt.Errorf("apply overlay %s: %w", feature, err)
	}
	running, err := workloads(manifests)
	if err != nil {
		return err
	}
	for _, w := range running {
		if err := t.kubectl(ctx, nil, out, "-n", Namespace, "rollout", "status", w, "--timeout="+patience); err != nil {
			t.tellWhatPodsWaitFor(ctx, out)
			return fmt.Errorf("wait for %s: %w", w, err)
		}
	}
	return nil
}

// tellWhatPodsWaitFor prints why containers of operators do not run, such as a registry that nodes cannot reach.
func (t Target) tellWhatPodsWaitFor(ctx context.Context, out io.Writer) {
	const waiting = "{range .items[*]}{.metadata.name}{range .status.containerStatuses[*].state.waiting}: {.reason} {.message}{end}\n{end}"
	told, err := t.Command(ctx, "-n", Namespace, "get", "pods", "-o", "jsonpath="+waiting).Output()
	if err == nil {
		fmt.Fprintf(out, "%s", told)
	}
}

// kubectl runs kubectl on the cluster. Its output is shown when it fails.
func (t Target) kubectl(ctx context.Context, input []byte, out io.Writer, args ...string) error {
	command := t.Command(ctx, args...)
	command.Stdin = bytes.NewReader(input)
	printed, err := command.CombinedOutput()
	if err != nil {
		fmt.Fprintf(out, "%s", printed)
	}
	return err
}
