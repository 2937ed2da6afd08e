package install

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"runtime"
	"strings"
	"testing/fstest"

	cloneset "github.com/flotilla-project/flotilla/cloneset/config"
	"github.com/flotilla-project/flotilla/kustomize"
	"github.com/flotilla-project/flotilla/kustomize/render"

	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/images"
)

// patience is how long kubectl waits for a Deployment.
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

// Feature builds a feature's manager, applies the feature's overlay with that very image and waits
// until the operator is available.
func Feature(ctx context.Context, c *cluster.Cluster, feature string, out io.Writer) error {
	fmt.Fprintf(out, "building the %s operator...\n", feature)
	built, err := images.Managers(ctx, images.Options{
		Registry: c.Registry(), Only: []string{feature}, Platforms: []string{"linux/" + runtime.GOARCH},
	})
	if err != nil {
		return fmt.Errorf("build the %s operator: %w", feature, err)
	}
	manifests, err := overlay(feature, built)
	if err != nil {
		return fmt.Errorf("render overlay %s: %w", feature, err)
	}
	if err := kubectl(ctx, c, manifests, out, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		return fmt.Errorf("apply overlay %s: %w", feature, err)
	}
	deployment := "deployment/" + feature + "-manager"
	err = kubectl(ctx, c, nil, out, "-n", "flotilla-system", "rollout", "status", deployment, "--timeout="+patience)
	if err != nil {
		return fmt.Errorf("wait for %s: %w", deployment, err)
	}
	return nil
}

// overlay renders the feature's overlay with its images pinned by digest, so that what runs is what
// was just built.
func overlay(feature string, built []images.Image) ([]byte, error) {
	var pins strings.Builder
	for _, image := range built {
		name := "flotilla/" + feature + "-manager"
		fmt.Fprintf(&pins, "- {name: %s, digest: %q}\n", name, image.Digest)
	}
	local := "resources:\n- ../kustomize/overlays/" + feature + "\nimages:\n" + pins.String()
	tree, err := render.NewTree(map[string]fs.FS{
		"kustomize":       kustomize.Files,
		"cloneset/config": cloneset.Files,
		"local":           fstest.MapFS{"kustomization.yaml": {Data: []byte(local)}},
	})
	if err != nil {
		return nil, err
	}
	var renderer render.Renderer
	return renderer.Build(tree, "local")
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
