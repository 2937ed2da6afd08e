package images

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const (
	// refName is the annotation with the name of an image in an OCI layout.
	refName = "org.opencontainers.image.ref.name"
	// owner is the path element before the name of each image.
	owner = "flotilla"
	// charts is the path element after it before the name of each Helm chart.
	charts = "charts"
)

// image is an image, or an index of images, of a layout.
type image struct {
	// repository is the name without registry and tag, such as "flotilla/cloneset-manager".
	repository, tag string
	digest          v1.Hash
	// platforms are those of an index.
	platforms []string
	content   remote.Taggable
}

// readLayout returns the images of an OCI layout, in its order. It compares the manifests with their digests, and checks the
// presence and the size of the blobs, so that a damaged folder is named before anything is pushed.
func readLayout(folder string) ([]image, error) {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, fmt.Errorf("read the OCI layout: %w", err)
	}
	content, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("parse index.json of the OCI layout: %w", err)
	}
	var images []image
	for _, descriptor := range content.Manifests {
		found, err := readImage(folder, index, descriptor)
		if err != nil {
			return nil, fmt.Errorf("read image %s (%s) of the OCI layout: %w", descriptor.Annotations[refName], descriptor.Digest, err)
		}
		images = append(images, found)
	}
	if len(images) == 0 {
		return nil, errors.New("the OCI layout has no image")
	}
	return images, nil
}

func readImage(folder string, parent v1.ImageIndex, descriptor v1.Descriptor) (image, error) {
	found := image{digest: descriptor.Digest}
	tag, err := name.NewTag(descriptor.Annotations[refName])
	if err != nil {
		return found, fmt.Errorf("annotation %s: %w", refName, err)
	}
	if found.repository = ownName(tag.RepositoryStr()); found.repository == "" {
		return found, fmt.Errorf("annotation %s: the name does not end with %s/NAME:TAG, so it is not an image of Flotilla", refName, owner)
	}
	found.tag = tag.TagStr()
	found.content, err = found.read(folder, parent, descriptor)
	return found, err
}

// ownName returns the name of an image or a chart of Flotilla without the registry; empty if it is neither.
func ownName(repository string) string {
	parts := strings.Split(repository, "/")
	own := 2
	if len(parts) > own && parts[len(parts)-own] == charts {
		own++
	}
	if len(parts) < own || parts[len(parts)-own] != owner {
		return ""
	}
	return path.Join(parts[len(parts)-own:]...)
}

// read returns what a descriptor in an index refers to, and checks it.
func (i *image) read(folder string, parent v1.ImageIndex, descriptor v1.Descriptor) (remote.Taggable, error) {
	switch {
	case descriptor.MediaType.IsIndex():
		index, err := parent.ImageIndex(descriptor.Digest)
		if err != nil {
			return nil, fmt.Errorf("find manifest %s: %w", descriptor.Digest, err)
		}
		return index, i.checkIndex(folder, index, descriptor.Digest)
	case descriptor.MediaType.IsImage():
		content, err := parent.Image(descriptor.Digest)
		if err != nil {
			return nil, fmt.Errorf("find manifest %s: %w", descriptor.Digest, err)
		}
		return content, checkImage(folder, content, descriptor.Digest)
	}
	return nil, fmt.Errorf("manifest %s has media type %q; an image or an index is required", descriptor.Digest, descriptor.MediaType)
}

func (i *image) checkIndex(folder string, index v1.ImageIndex, digest v1.Hash) error {
	if err := checkManifest(index, digest); err != nil {
		return err
	}
	content, err := index.IndexManifest()
	if err != nil {
		return fmt.Errorf("parse index %s: %w", digest, err)
	}
	for _, child := range content.Manifests {
		if child.Platform != nil {
			i.platforms = append(i.platforms, child.Platform.String())
		}
		if _, err := i.read(folder, index, child); err != nil {
			return err
		}
	}
	return nil
}

func checkImage(folder string, content v1.Image, digest v1.Hash) error {
	if err := checkManifest(content, digest); err != nil {
		return err
	}
	manifest, err := content.Manifest()
	if err != nil {
		return fmt.Errorf("parse manifest %s: %w", digest, err)
	}
	for _, blob := range append([]v1.Descriptor{manifest.Config}, manifest.Layers...) {
		if err := checkBlob(folder, blob); err != nil {
			return err
		}
	}
	return nil
}

// checkManifest compares a manifest with its digest: a registry would compute another one for a changed manifest.
func checkManifest(manifest interface{ Digest() (v1.Hash, error) }, want v1.Hash) error {
	got, err := manifest.Digest()
	if err != nil {
		return fmt.Errorf("find manifest %s: %w", want, err)
	}
	if got != want {
		return fmt.Errorf("manifest %s has another content than its digest says: the folder is damaged, copy it again", want)
	}
	return nil
}

func checkBlob(folder string, blob v1.Descriptor) error {
	info, err := os.Stat(filepath.Join(folder, "blobs", blob.Digest.Algorithm, blob.Digest.Hex))
	if err != nil {
		return fmt.Errorf("find blob %s: %w", blob.Digest, err)
	}
	if info.Size() != blob.Size {
		return fmt.Errorf("blob %s has %d bytes, but its manifest says %d: the folder is damaged, copy it again", blob.Digest, info.Size(), blob.Size)
	}
	return nil
}
