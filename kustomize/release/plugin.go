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

	"github.com/flotilla-project/flotilla/kustomize/release/images"
)

const (
	// plugin is the name under which kubectl finds the command.
	plugin = "kubectl-flotilla"
	// project is where releases can be downloaded from, below the folder of their tag.
	project = "https://github.com/flotilla-project/flotilla"
)

// DefaultMachines are the operating systems and processors that the command is released for.
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

// command writes an archive of the command for each machine, its SBOM, the krew manifest that names the archives, the charts of all
// features, and where images have a registry, the file that installs all features and the overlays.
func (o Options) command(ctx context.Context, r Release, built []images.Image) error {
	if err := os.MkdirAll(o.assets(r), 0o755); err != nil { //nolint:gosec // for everybody
		return err
	}
	all, err := o.everything(ctx, built)
	if err != nil {
		return err
	}
	if len(all) > 0 {
		if err := errors.Join(o.installAll(r, all), o.overlays(r, all)); err != nil {
			return err
		}
	}
	machines := o.Machines
	if len(machines) == 0 {
		machines = DefaultMachines()
	}
	manifest := newKrew(r)
	for _, machine := range machines {
		platform, err := o.plugin(ctx, r, machine, digests(all))
		if err != nil {
			return err
		}
		manifest.Spec.Platforms = append(manifest.Spec.Platforms, platform)
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.assets(r), "flotilla.yaml"), text, 0o644); err != nil { //nolint:gosec // for everybody
		return err
	}
	return o.umbrellas(ctx, r)
}

// newKrew returns the manifest without platforms.
func newKrew(r Release) krew {
	return krew{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2",
		Kind:       "Plugin",
		Metadata:   map[string]string{"name": strings.TrimPrefix(plugin, "kubectl-")},
		Spec: krewSpec{
			Version:          r.To,
			Homepage:         project,
			ShortDescription: "Install Flotilla, watch and explain its rollouts",
			Description: "Installs, upgrades and removes the operators of Flotilla; watches, pauses, undoes and explains\n" +
				"rollouts of CloneSets, StatefulSets and DaemonSets of apps.kruise.io.\n",
		},
	}
}

// plugin writes the archive of the command for a machine, and its SBOM.
func (o Options) plugin(ctx context.Context, r Release, machine, digests string) (krewPlatform, error) {
	system, architecture, found := strings.Cut(machine, "/")
	if !found {
		return krewPlatform{}, fmt.Errorf("build the plugin: %q is not OS/ARCHITECTURE", machine)
	}
	binary, err := o.link(ctx, r, system, architecture, digests)
	if err != nil {
		return krewPlatform{}, err
	}
	if err := o.sbom(r, binary, plugin, system+"_"+architecture); err != nil {
		return krewPlatform{}, err
	}
	files, err := o.contents(r, system, binary)
	if err != nil {
		return krewPlatform{}, err
	}
	packed, err := archive(files)
	if err != nil {
		return krewPlatform{}, err
	}
	name := fmt.Sprintf("%s-%s-%s_%s.tar.gz", plugin, r.To, system, architecture)
	if err := os.WriteFile(filepath.Join(o.assets(r), name), packed, 0o644); err != nil { //nolint:gosec // for everybody
		return krewPlatform{}, err
	}
	platform := krewPlatform{
		URI:    project + "/releases/download/" + url.PathEscape(r.Tag()) + "/" + name,
		SHA256: fmt.Sprintf("%x", sha256.Sum256(packed)),
		Bin:    files[0].name,
	}
	platform.Selector.MatchLabels = map[string]string{"os": system, "arch": architecture}
	return platform, nil
}

// packed is a file of an archive.
type packed struct {
	name    string
	mode    int64
	content []byte
}

// completion is the program that kubectl calls to complete the arguments of the plugin.
const completion = "#!/bin/sh\nexec kubectl flotilla __complete \"$@\"\n"

// contents returns the files of the archive for a system: the command, the license and, where kubectl can run it, the script for
// completion.
func (o Options) contents(r Release, system, binary string) ([]packed, error) {
	command, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(o.Root, r.Module, "LICENSE"))
	if err != nil {
		return nil, err
	}
	if system == "windows" {
		return []packed{{plugin + ".exe", 0o755, command}, {"LICENSE", 0o644, license}}, nil
	}
	return []packed{{plugin, 0o755, command}, {"LICENSE", 0o644, license}, {"kubectl_complete-flotilla", 0o755, []byte(completion)}}, nil
}

// link compiles the command for a machine, and returns the file.
func (o Options) link(ctx context.Context, r Release, system, architecture, digests string) (string, error) {
	const catalog = " -X github.com/flotilla-project/flotilla/kustomize/catalog."
	out := filepath.Join(o.Root, "bin", "plugin", system+"_"+architecture, plugin)
	flags := "-s -w -X main.release=" + r.To + catalog + "Registry=" + o.Registry + catalog + "Digests=" + digests
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", out, "./cmd/flotilla")
	build.Dir = filepath.Join(o.Root, r.Module)
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+architecture)
	if message, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile %s for %s/%s: %w", plugin, system, architecture, errors.Join(err, errors.New(strings.TrimSpace(string(message)))))
	}
	return out, nil
}

// archive packs files; the same files give the same bytes.
func archive(files []packed) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	tape := tar.NewWriter(zipped)
	for _, file := range files {
		err := tape.WriteHeader(&tar.Header{
			Name:   file.name,
			Mode:   file.mode,
			Size:   int64(len(file.content)),
			Format: tar.FormatUSTAR,
		})
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
	return out.Bytes(), nil
}
