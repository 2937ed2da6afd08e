package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The media types by which Helm knows charts in registries.
const (
	configType  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	contentType types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// Archive packs a chart. The same files give the same bytes.
func (c Chart) Archive() ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	tape := tar.NewWriter(zipped)
	for _, file := range c.Files {
		err := tape.WriteHeader(&tar.Header{
			Name:   c.Name + "/" + file.Name,
			Mode:   0o644,
			Size:   int64(len(file.Content)),
			Format: tar.FormatUSTAR,
		})
		if err != nil {
			return nil, fmt.Errorf("pack %s of chart %s: %w", file.Name, c.Name, err)
		}
		if _, err := tape.Write(file.Content); err != nil {
			return nil, fmt.Errorf("pack %s of chart %s: %w", file.Name, c.Name, err)
		}
	}
	if err := errors.Join(tape.Close(), zipped.Close()); err != nil {
		return nil, fmt.Errorf("pack chart %s: %w", c.Name, err)
	}
	return packed.Bytes(), nil
}

// Image returns the chart as registries store it.
func (c Chart) Image() (v1.Image, error) {
	archive, err := c.Archive()
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(c.Metadata)
	if err != nil {
		return nil, fmt.Errorf("describe chart %s: %w", c.Name, err)
	}
	layer := static.NewLayer(archive, contentType)
	described, err := partial.Descriptor(layer)
	if err != nil {
		return nil, fmt.Errorf("describe the archive of chart %s: %w", c.Name, err)
	}
	digest, size, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, fmt.Errorf("describe chart %s: %w", c.Name, err)
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		Config:        v1.Descriptor{MediaType: configType, Size: size, Digest: digest},
		Layers:        []v1.Descriptor{*described},
		Annotations: map[string]string{
			"org.opencontainers.image.title":       c.Name,
			"org.opencontainers.image.version":     c.Version,
			"org.opencontainers.image.description": c.Metadata.Description,
			"org.opencontainers.image.source":      c.Metadata.Home,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("describe chart %s: %w", c.Name, err)
	}
	return partial.CompressedToImage(packed{manifest, config, layer})
}

// packed is a chart as the core of an image.
type packed struct {
	manifest, config []byte
	layer            v1.Layer
}

// RawManifest returns the manifest.
func (p packed) RawManifest() ([]byte, error) { return p.manifest, nil }

// RawConfigFile returns the description of the chart.
func (p packed) RawConfigFile() ([]byte, error) { return p.config, nil }

// MediaType returns the media type of the manifest.
func (packed) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// LayerByDigest returns the archive.
func (p packed) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	own, err := p.layer.Digest()
	if err != nil {
		return nil, err
	}
	if digest != own {
		return nil, fmt.Errorf("find layer %s: the chart has only %s", digest, own)
	}
	return p.layer, nil
}
