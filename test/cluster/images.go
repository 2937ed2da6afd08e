package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// sandboxImage is the image of the sandbox container, which holds the namespaces of a pod.
const sandboxImage = "registry.k8s.io/pause:3.10.1"

// staticImage returns an image with one static program, which is its command. The same program gives an identical
// image.
func staticImage(program string) (v1.Image, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	target := filepath.Base(program)
	layer, err := fileLayer(target, data)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Config = v1.Config{Entrypoint: []string{"/" + target}}
	return mutate.ConfigFile(image, file)
}

// fileLayer holds one executable file, without a time.
func fileLayer(name string, data []byte) (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))}); err != nil {
		return nil, err
	}
	if _, err := writer.Write(data); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	})
}

// Registry returns the address, on the machine's loopback, of the registry that serves the nodes. It is empty in a
// simulated cluster.
func (c *Cluster) Registry() string {
	if c.state.RegistryPort == 0 {
		return ""
	}
	return loopback(c.state.RegistryPort)
}

// PushImage makes an image available to pods by a reference with any registry, such as docker.io/library/web:1 or
// example.com/web:1. If an image is pushed again with the same tag, the next pod uses it.
func (c *Cluster) PushImage(ctx context.Context, reference string, image v1.Image) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return fmt.Errorf("push image: %w", err)
	}
	local, err := name.NewTag(c.Registry()+"/"+tag.RepositoryStr()+":"+tag.TagStr(), name.Insecure)
	if err != nil {
		return fmt.Errorf("push image: %w", err)
	}
	owner := remote.WithAuth(&authn.Basic{Username: PrivateUser, Password: PrivatePassword})
	if err := remote.Write(local, image, remote.WithContext(ctx), owner); err != nil {
		return fmt.Errorf("push image %s: %w", reference, err)
	}
	return c.forgetImage(ctx, strings.Replace(tag.Name(), "index.docker.io/", "docker.io/", 1))
}

// forgetImage removes an image from all running nodes, so that they pull it again with any pull policy.
func (c *Cluster) forgetImage(ctx context.Context, reference string) error {
	var machines []MachineStatus
	if err := c.control(ctx, "GET", "/machines", &machines); err != nil {
		return err
	}
	for _, m := range machines[1:] {
		socket := fmt.Sprintf("/proc/%d/root%s", m.PID, containerdSocket)
		if _, err := os.Stat(socket); m.PID == 0 || err != nil {
			continue // not up yet: it has pulled nothing since its boot
		}
		cmd := exec.CommandContext(ctx, filepath.Join(c.state.Containerd, "ctr"),
			"--address", socket, "--namespace", "k8s.io", "images", "rm", reference)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("make node %s forget image %s: %w: %s", m.Name, reference, err, lastLines(out, 1))
		}
	}
	return nil
}
