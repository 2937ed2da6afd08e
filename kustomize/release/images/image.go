package images

import (
	"fmt"
	"maps"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sync/errgroup"
)

const (
	sourceURL = "https://github.com/flotilla-project/flotilla"
	license   = "Apache-2.0"
)

// content is the content of an image in addition to the base files.
type content struct {
	title  string
	layers [][]file // the lower first, so that images that share one share its blob
	entry  string
}

func (o Options) labels(title string) map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":    title,
		"org.opencontainers.image.version":  o.Version,
		"org.opencontainers.image.revision": o.Revision,
		"org.opencontainers.image.source":   sourceURL,
		"org.opencontainers.image.licenses": license,
	}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	return labels
}

// newImage builds the image of one platform.
func (o Options) newImage(c content, platform v1.Platform) (v1.Image, error) {
	var layers []v1.Layer
	for _, files := range slices.Concat([][]file{baseFiles()}, c.layers) {
		layer, err := newLayer(files)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err := mutate.AppendLayers(image, layers...)
	if err != nil {
		return nil, fmt.Errorf("add layers: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the image's configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS = platform.OS
	config.Architecture = platform.Architecture
	config.Variant = platform.Variant
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", nonroot, nonroot),
		Entrypoint: []string{c.entry},
		WorkingDir: "/",
		Labels:     o.labels(c.title),
	}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return nil, fmt.Errorf("write the image's configuration: %w", err)
	}
	return image, nil
}

// artifact is an image or an index of images that is ready to be stored.
type artifact struct {
	image v1.Image      // one of these two
	index v1.ImageIndex // is set
}

// assemble builds an image of each platform's binary, and an index of them if there are several. layout returns the
// content of an image for a binary.
func (o Options) assemble(binaries []binary, layout func(data []byte) content) (artifact, error) {
	entries := make([]mutate.IndexAddendum, len(binaries))
	var packing errgroup.Group
	for i, b := range binaries {
		packing.Go(func() error {
			image, err := o.newImage(layout(b.data), b.platform)
			entries[i] = mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &b.platform}}
			return err
		})
	}
	if err := packing.Wait(); err != nil {
		return artifact{}, err
	}
	if image, ok := entries[0].Add.(v1.Image); ok && len(entries) == 1 {
		return artifact{image: image}, nil
	}
	return artifact{index: mutate.AppendManifests(empty.Index, entries...)}, nil
}

func (a artifact) digest() (v1.Hash, error) {
	if a.index != nil {
		return a.index.Digest()
	}
	return a.image.Digest()
}
