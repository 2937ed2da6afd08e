package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// plugin is the name under which kubectl finds the command.
	plugin = "kubectl-flotilla"
	// project is where releases can be downloaded from, below the folder of their tag.
	project = "https://github.com/flotilla-project/flotilla"
)

// DefaultMachines are those of the people who use the command.
func DefaultMachines() []string {
	return []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
}

// krew is the manifest of a plugin, as far as it is used here.
type krew struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

// plugin writes an archive of the command for each machine, and the krew manifest that names them.
func (o Options) plugin(ctx context.Context, r Release) error {
	folder := filepath.Join(o.Output, "plugin")
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // for everybody
		return err
	}
	license, err := os.ReadFile(filepath.Join(o.Root, r.Module, "LICENSE"))
	if err != nil {
		return err
	}
	machines := o.Machines
	if len(machines) == 0 {
		machines = DefaultMachines()
	}
	manifest := krew{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: map[string]string{"name": strings.TrimPrefix(plugin, "kubectl-")},
		Spec: krewSpec{
			Version: r.To, Homepage: project, ShortDescription: "Install Flotilla, watch and explain its rollouts",
			Description: "Installs, upgrades and removes the operators of Flotilla; watches, pauses, undoes and explains\n" +
				"rollouts of CloneSets, StatefulSets and DaemonSets of apps.kruise.io.\n",
		},
	}
	for _, machine := range machines {
		system, architecture, found := strings.Cut(machine, "/")
		if !found {
			return fmt.Errorf("build the plugin: %q is not OS/ARCHITECTURE", machine)
		}
		binary, err := o.command(ctx, r, system, architecture)
		if err != nil {
			return err
		}
		bin := plugin
		if system == "windows" {
			bin += ".exe"
		}
		packed, err := archive(bin, binary, license)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s-%s-%s_%s.tar.gz", plugin, r.To, system, architecture)
		if err := os.WriteFile(filepath.Join(folder, name), packed, 0o644); err != nil { //nolint:gosec // for everybody
			return err
		}
		platform := krewPlatform{
			URI: project + "/releases/download/" + url.PathEscape(r.Tag()) + "/" + name, SHA256: fmt.Sprintf("%x", sha256.Sum256(packed)), Bin: bin,
		}
		platform.Selector.MatchLabels = map[string]string{"os": system, "arch": architecture}
		manifest.Spec.Platforms = append(manifest.Spec.Platforms, platform)
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "flotilla.yaml"), text, 0o644) //nolint:gosec // for everybody
}

// command compiles the command for a machine.
func (o Options) command(ctx context.Context, r Release, system, architecture string) ([]byte, error) {
	out := filepath.Join(o.Root, "bin", "plugin", system+"_"+architecture, plugin)
	flags := "-s -w -X main.release=" + r.To + " -X github.com/flotilla-project/flotilla/kustomize/catalog.Registry=" + o.Registry
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", out, "./cmd/flotilla")
	build.Dir = filepath.Join(o.Root, r.Module)
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture)
	if message, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile %s for %s/%s: %w", plugin, system, architecture, errors.Join(err, errors.New(strings.TrimSpace(string(message)))))
	}
	return os.ReadFile(out)
}

// archive packs the binary under its name, and the license; the same files give the same bytes.
func archive(bin string, binary, license []byte) ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	tape := tar.NewWriter(zipped)
	for _, file := range []struct {
		name    string
		mode    int64
		content []byte
	}{{bin, 0o755, binary}, {"LICENSE", 0o644, license}} {
		err := tape.WriteHeader(&tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.content)), Format: tar.FormatUSTAR})
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", file.name, err)
		}
		if _, err := tape.Write(file.content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", file.name, err)
		}
	}
	if err := errors.Join(tape.Close(), zipped.Close()); err != nil {
		return nil, fmt.Errorf("pack the plugin: %w", err)
	}
	return packed.Bytes(), nil
}
