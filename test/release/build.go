package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/flotilla-project/flotilla/test/images"
	"github.com/flotilla-project/flotilla/test/install"
)

// Options say where a release is built.
type Options struct {
	// Root is the folder of go.work.
	Root string
	// Output is the folder to write, which must not exist.
	Output string
	// Registry is named by the install files, and gets the images if Push is set.
	Registry string
	Push     bool
	// Platforms are those of the images. Default: those of images.Managers.
	Platforms []string
	// Machines are those that the command is built for. Default: DefaultMachines.
	Machines []string
	// Revision is the commit, for the images' labels.
	Revision string
	Date     time.Time
}

// Build writes what users get of the releases: for each feature the images (an OCI layout in images), one file that installs
// it (install-FEATURE.yaml) and an SBOM of each binary (sbom); the command as a plugin of kubectl, with its krew manifest
// (plugin); for each module its changes (notes); and the checksums of all (SHA256SUMS).
func Build(ctx context.Context, o Options, releases []Release) error {
	if _, err := os.Stat(o.Output); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("build the release: folder %s exists", o.Output)
	}
	for _, folder := range []string{"images", "sbom", "notes"} {
		if err := os.MkdirAll(filepath.Join(o.Output, folder), 0o755); err != nil { //nolint:gosec // for everybody
			return fmt.Errorf("build the release: %w", err)
		}
	}
	for _, r := range releases {
		if err := o.notes(r); err != nil {
			return fmt.Errorf("write the notes of %s: %w", r.Tag(), err)
		}
		build := o.feature
		if has(o.Root, r.Module, "cmd", "flotilla", "main.go") {
			build = o.plugin
		} else if !has(o.Root, r.Module, "cmd", "manager", "main.go") {
			continue
		}
		if err := build(ctx, r); err != nil {
			return fmt.Errorf("build %s: %w", r.Tag(), err)
		}
	}
	return checksums(o.Output)
}

func has(parts ...string) bool {
	_, err := os.Stat(filepath.Join(parts...))
	return err == nil
}

// notes writes the newest section of the module's changelog.
func (o Options) notes(r Release) error {
	text, err := os.ReadFile(filepath.Join(o.Root, r.Module, changelog))
	if err != nil {
		return err
	}
	_, _, released := split(string(text))
	section, _, _ := strings.Cut(released, "\n## ")
	name := strings.ReplaceAll(r.Tag(), "/", "-") + ".md"
	return os.WriteFile(filepath.Join(o.Output, "notes", name), []byte(section), 0o644) //nolint:gosec // for everybody
}

func (o Options) feature(ctx context.Context, r Release) error {
	target := images.Options{
		Root: o.Root, Output: filepath.Join(o.Output, "images"), Platforms: o.Platforms, Only: []string{r.Module},
		Version: r.To, Revision: o.Revision, Binaries: filepath.Join(o.Root, "bin", "images"),
	}
	if o.Push {
		target.Registry = o.Registry
	}
	if len(target.Platforms) == 0 {
		target.Platforms = images.DefaultPlatforms()
	}
	built, err := images.Managers(ctx, target)
	if err != nil {
		return err
	}
	for _, image := range built {
		name, _, _ := strings.Cut(path.Base(image.Reference), ":")
		for _, platform := range target.Platforms {
			platform = strings.ReplaceAll(platform, "/", "_")
			file := filepath.Join(o.Output, "sbom", name+"-"+r.To+"-"+platform+".spdx.json")
			if err := writeSBOM(filepath.Join(target.Binaries, platform, name), name, r.To, file, o.Date); err != nil {
				return err
			}
		}
	}
	return o.install(r, built)
}

func (o Options) install(r Release, built []images.Image) error {
	manifests, err := install.ManifestsFrom(o.Registry, r.Module, built...)
	if err != nil {
		return err
	}
	text := append([]byte("# Flotilla "+r.Tag()+": kubectl apply --server-side -f install-"+r.Module+".yaml\n"), manifests...)
	return os.WriteFile(filepath.Join(o.Output, "install-"+r.Module+".yaml"), text, 0o644) //nolint:gosec // for everybody
}

// checksums writes SHA256SUMS, as sha256sum --check reads it.
func checksums(folder string) error {
	var sums bytes.Buffer
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), name)
		return nil
	})
	if err != nil {
		return fmt.Errorf("compute the checksums: %w", err)
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), sums.Bytes(), 0o644) //nolint:gosec // for everybody
}
