package release

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/flotilla-project/flotilla/kustomize/catalog"

	"github.com/flotilla-project/flotilla/kustomize/release/images"
	"github.com/flotilla-project/flotilla/kustomize/release/overlays"
)

// everything returns the images of all features: the images of this build, and the images in the registry of the last release
// of other features. Without a registry there are none.
func (o Options) everything(ctx context.Context, built []images.Image) ([]images.Image, error) {
	if o.Registry == "" {
		return nil, nil
	}
	features, err := catalog.Features()
	if err != nil {
		return nil, err
	}
	all := slices.Clone(built)
	for _, feature := range features {
		for _, image := range feature.Images {
			if slices.ContainsFunc(built, func(b images.Image) bool { return repositoryOf(b) == path.Base(image) }) {
				continue
			}
			released, err := find(ctx, o.Registry+"/"+image+":"+feature.Version)
			if err != nil {
				return nil, err
			}
			all = append(all, released)
		}
	}
	return all, nil
}

// repositoryOf returns the last part of the name of an image, such as cloneset-manager.
func repositoryOf(image images.Image) string {
	repository, _, _ := strings.Cut(path.Base(image.Reference), ":")
	return repository
}

// find reads the digest of an image in its registry.
func find(ctx context.Context, reference string) (images.Image, error) {
	tag, err := name.NewTag(reference)
	if err != nil {
		return images.Image{}, fmt.Errorf("name image %s: %w", reference, err)
	}
	found, err := remote.Head(tag, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return images.Image{}, fmt.Errorf("read the digest of %s, which this build does not contain: %w", reference, err)
	}
	return images.Image{Reference: reference, Digest: found.Digest.String()}, nil
}

// installAll writes install-all.yaml, one file that installs every feature.
func (o Options) installAll(r Release, all []images.Image) error {
	manifests, err := overlays.Manifests(o.Registry, catalog.All, all)
	if err != nil {
		return err
	}
	text := append([]byte("# Flotilla "+r.Tag()+", all features: kubectl apply --server-side -f install-all.yaml\n"), manifests...)
	return os.WriteFile(filepath.Join(o.assets(r), "install-all.yaml"), text, 0o644) //nolint:gosec // for everybody
}

// digests returns the images as the command is linked with them.
func digests(all []images.Image) string {
	var pins []string
	for _, image := range all {
		pins = append(pins, "flotilla/"+repositoryOf(image)+"="+image.Digest)
	}
	return strings.Join(pins, ",")
}
