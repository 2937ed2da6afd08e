package images

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Options describe the images to build and the place to store them. Either Registry or Output must be set.
type Options struct {
	// Root is the folder of go.work. Default: the nearest such folder above the working directory.
	Root string
	// Registry is the host, with port and path prefix where there are any, that images are pushed to. Credentials come
	// from the user's container tools. Hosts on loopback and in private networks are accessed by HTTP, too.
	Registry string
	// Insecure allows plain HTTP for any registry.
	Insecure bool
	// Output is a folder to which images are added as an OCI layout, named by annotation
	// org.opencontainers.image.ref.name.
	Output string
	// Platforms are the platforms to build for, such as "linux/arm64". With several, each image is an index of them.
	// Default: DefaultPlatforms for managers, the platform of this machine for the demo.
	Platforms []string
	// Only restricts managers to these modules, such as "cloneset". Default: all.
	Only []string
	// Version goes into labels and into the binaries, as their version. Default: "dev".
	Version string
	// Tag is the images' tag. Default: Version, and without one the tag that the manifests of the module name, so that
	// these find the images.
	Tag string
	// Revision is the commit, for the labels.
	Revision string
	// Binaries is the folder of linked binaries, so that unchanged ones are not linked again. Default: bin/images in
	// Root.
	Binaries string
}

// DefaultPlatforms returns those that managers are released for.
func DefaultPlatforms() []string { return []string{"linux/amd64", "linux/arm64"} }

// Image is a stored image, or a stored index of images.
type Image struct {
	// Reference names it by tag.
	Reference string
	// Digest names its content.
	Digest string
}

func (o Options) withDefaults(platforms ...string) (Options, error) {
	if o.Registry == "" && o.Output == "" {
		return o, errors.New("build images: neither a registry nor an output folder is given")
	}
	if len(o.Platforms) == 0 {
		o.Platforms = platforms
	}
	o.Platforms = slices.Compact(slices.Sorted(slices.Values(o.Platforms)))
	return o.complete()
}

// complete sets the defaults that are the same for all images.
func (o Options) complete() (Options, error) {
	if o.Root == "" {
		root, err := FindRoot()
		if err != nil {
			return o, err
		}
		o.Root = root
	}
	o.Tag = cmp.Or(o.Tag, o.Version)
	o.Version = cmp.Or(o.Version, "dev")
	o.Binaries = cmp.Or(o.Binaries, filepath.Join(o.Root, "bin", "images"))
	return o, nil
}

// FindRoot walks up from the working directory to the folder of go.work.
func FindRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find go.work: %w", err)
	}
	for start := dir; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find go.work: not in %s nor above", start)
		}
	}
}

func parsePlatforms(names []string) ([]v1.Platform, error) {
	var platforms []v1.Platform
	for _, name := range names {
		p, err := v1.ParsePlatform(name)
		if err != nil {
			return nil, fmt.Errorf("read platform %q: %w", name, err)
		}
		if p.OS != "linux" || p.Architecture == "" {
			return nil, fmt.Errorf("read platform %q: want linux/ARCHITECTURE", name)
		}
		platforms = append(platforms, *p)
	}
	return platforms, nil
}

func localPlatform() string { return "linux/" + runtime.GOARCH }
