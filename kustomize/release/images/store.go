package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// refName is the annotation by which an OCI layout names its images.
const refName = "org.opencontainers.image.ref.name"

// Store puts an artifact that is no image of a program, such as a chart, into the registry and the layout of the options. It is
// stored as an image.
func (o Options) Store(ctx context.Context, repository string, content v1.Image, tag string) (Image, error) {
	stored, err := o.store(ctx, repository, artifact{image: content}, tag)
	if err != nil {
		return Image{}, err
	}
	return stored[0], nil
}

// store puts the artifact with each of the tags into the registry and the layout of the options.
func (o Options) store(ctx context.Context, repository string, a artifact, tags ...string) ([]Image, error) {
	digest, err := a.digest()
	if err != nil {
		return nil, fmt.Errorf("compute the digest of %s: %w", repository, err)
	}
	var stored []Image
	for _, tag := range tags {
		reference := repository + ":" + tag
		if o.Registry != "" {
			reference = o.Registry + "/" + reference
			if err := o.push(ctx, reference, a); err != nil {
				return nil, fmt.Errorf("push %s: %w", reference, err)
			}
		}
		if o.Output != "" {
			if err := a.save(o.Output, reference); err != nil {
				return nil, fmt.Errorf("save %s: %w", reference, err)
			}
		}
		stored = append(stored, Image{Reference: reference, Digest: digest.String()})
	}
	return stored, nil
}

func (o Options) push(ctx context.Context, reference string, a artifact) error {
	var options []name.Option
	if o.Insecure {
		options = append(options, name.Insecure)
	}
	tag, err := name.NewTag(reference, options...)
	if err != nil {
		return err
	}
	with := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if a.index != nil {
		return remote.WriteIndex(tag, a.index, with...)
	}
	return remote.Write(tag, a.image, with...)
}

// save adds the artifact to the layout, and replaces the one with that name.
func (a artifact) save(folder, reference string) error {
	at := layout.Path(folder)
	if _, err := os.Stat(filepath.Join(folder, "index.json")); os.IsNotExist(err) {
		if at, err = layout.Write(folder, empty.Index); err != nil {
			return err
		}
	}
	named := layout.WithAnnotations(map[string]string{refName: reference})
	if a.index != nil {
		return at.ReplaceIndex(a.index, match.Name(reference), named)
	}
	return at.ReplaceImage(a.image, match.Name(reference), named)
}
