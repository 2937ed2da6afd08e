package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/flotilla-project/flotilla/kustomize/release/images"
	"github.com/flotilla-project/flotilla/kustomize/release/overlays"
)

// sumsName is the file with the checksums of the files of a release.
const sumsName = "SHA256SUMS"

// Options say where a release is built.
type Options struct {
	// Root is the folder of go.work.
	Root string
	// Output is the folder to write, which must not exist.
	Output string
	// Registry is named by the install files, and gets the images if Push is set.
	Registry string
	Push     bool
	// Platforms are the platforms to build images for. Default: images.DefaultPlatforms.
	Platforms []string
	// Machines are those that the command is built for. Default: DefaultMachines.
	Machines []string
	// Revision is the commit, for the images' labels.
	Revision string
	Date     time.Time
}

// Build writes the files of the releases. Each release has a folder MODULE-VERSION with the files that users download and
// their checksums (SHA256SUMS): of a feature one file that installs it (install-FEATURE.yaml) and its Helm charts, of the command one
// file that installs all features (install-all.yaml), the overlays, the charts of all features, and archives of the command with their
// krew manifest (flotilla.yaml), of each binary an SBOM. Folder images has images and charts as an OCI layout, file sboms the SBOM of
// each image, and folder notes the changes of each module.
func Build(ctx context.Context, o Options, releases []Release) error {
	if _, err := os.Stat(o.Output); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("build the release: folder %s exists", o.Output)
	}
	for _, folder := range []string{"images", "notes"} {
		if err := os.MkdirAll(filepath.Join(o.Output, folder), 0o755); err != nil { //nolint:gosec // for everybody
			return fmt.Errorf("build the release: %w", err)
		}
	}
	var built []images.Image
	for _, r := range releases {
		if err := o.notes(r); err != nil {
			return fmt.Errorf("write the notes of %s: %w", r.Tag(), err)
		}
		if !has(o.Root, r.Module, "cmd", "manager", "main.go") {
			continue
		}
		images, err := o.feature(ctx, r)
		if err != nil {
			return fmt.Errorf("build %s: %w", r.Tag(), err)
		}
		built = append(built, images...)
	}
	// The command knows the digests of the images.
	for _, r := range releases {
		if !has(o.Root, r.Module, "cmd", "flotilla", "main.go") {
			continue
		}
		if err := o.command(ctx, r, built); err != nil {
			return fmt.Errorf("build %s: %w", r.Tag(), err)
		}
	}
	return o.checksums(releases)
}

// folderOf returns the name of the folder of a release: its tag without a slash.
func folderOf(r Release) string { return strings.ReplaceAll(r.Tag(), "/", "-") }

// assets returns the folder of the files that users download of a release.
func (o Options) assets(r Release) string { return filepath.Join(o.Output, folderOf(r)) }

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
	return os.WriteFile(filepath.Join(o.Output, "notes", folderOf(r)+".md"), []byte(section), 0o644) //nolint:gosec // for everybody
}

// feature builds the images of a feature, its install file and the SBOMs of its binaries.
func (o Options) feature(ctx context.Context, r Release) ([]images.Image, error) {
	if err := os.MkdirAll(o.assets(r), 0o755); err != nil { //nolint:gosec // for everybody
		return nil, err
	}
	target := images.Options{
		Root:      o.Root,
		Output:    filepath.Join(o.Output, "images"),
		Platforms: o.Platforms,
		Only:      []string{r.Module},
		Version:   r.To,
		Revision:  o.Revision,
		Binaries:  filepath.Join(o.Root, "bin", "images"),
	}
	if o.Push {
		target.Registry = o.Registry
	}
	if len(target.Platforms) == 0 {
		target.Platforms = images.DefaultPlatforms()
	}
	built, err := images.Managers(ctx, target)
	if err != nil {
		return nil, err
	}
	for _, image := range built {
		name := repositoryOf(image)
		for _, platform := range target.Platforms {
			platform = strings.ReplaceAll(platform, "/", "_")
			if err := o.sbom(r, filepath.Join(target.Binaries, platform, name), name, platform); err != nil {
				return nil, err
			}
		}
	}
	return built, errors.Join(o.install(r, built), o.listSBOMs(r, built, target.Platforms), o.chartsOf(ctx, r))
}

func (o Options) install(r Release, built []images.Image) error {
	manifests, err := overlays.Manifests(o.Registry, r.Module, built)
	if err != nil {
		return err
	}
	text := append([]byte("# Flotilla "+r.Tag()+": kubectl apply --server-side -f install-"+r.Module+".yaml\n"), manifests...)
	return os.WriteFile(filepath.Join(o.assets(r), "install-"+r.Module+".yaml"), text, 0o644) //nolint:gosec // for everybody
}

// checksums writes SHA256SUMS into the folder of each release, as sha256sum --check reads it.
func (o Options) checksums(releases []Release) error {
	for _, r := range releases {
		files, err := filepath.Glob(filepath.Join(o.assets(r), "*"))
		if err != nil {
			return fmt.Errorf("compute the checksums of %s: %w", r.Tag(), err)
		}
		if len(files) == 0 { // a library has none
			continue
		}
		var sums bytes.Buffer
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("compute the checksums of %s: %w", r.Tag(), err)
			}
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), filepath.Base(file))
		}
		err = os.WriteFile(filepath.Join(o.assets(r), sumsName), sums.Bytes(), 0o644) //nolint:gosec // for everybody
		if err != nil {
			return fmt.Errorf("write the checksums of %s: %w", r.Tag(), err)
		}
	}
	return nil
}
