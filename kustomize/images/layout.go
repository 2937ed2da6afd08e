package images

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	// refName is the annotation with the name of an image in an OCI layout.
	refName = "org.opencontainers.image.ref.name"
	// owner is the path element before the name of each image.
	owner = "flotilla"
	// mostOfManifest limits the size of a manifest, as registries do.
	mostOfManifest = 4 << 20
)

// image is an image, or an index of images, of a layout.
type image struct {
	// repository is the name without registry and tag, such as "flotilla/cloneset-manager".
	repository, tag string
	digest          v1.Hash
	// platforms are those of an index.
	platforms []string
	// blobs are the configurations and layers, each once.
	blobs []v1.Descriptor
	// manifests are in the order in which a registry accepts them: an index follows its images.
	manifests []manifest
}

// manifest is a manifest of an image or of an index, byte by byte.
type manifest struct {
	descriptor v1.Descriptor
	text       []byte
}

// readLayout returns the images of an OCI layout, in its order. It reads the manifests, and checks the presence and the size of
// the blobs.
func readLayout(layout fs.FS) ([]image, error) {
	text, err := fs.ReadFile(layout, "index.json")
	if err != nil {
		return nil, fmt.Errorf("read the OCI layout: %w", err)
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse index.json of the OCI layout: %w", err)
	}
	var images []image
	for _, descriptor := range index.Manifests {
		found, err := readImage(layout, descriptor)
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

func readImage(layout fs.FS, descriptor v1.Descriptor) (image, error) {
	found := image{digest: descriptor.Digest}
	tag, err := name.NewTag(descriptor.Annotations[refName])
	if err != nil {
		return found, fmt.Errorf("annotation %s: %w", refName, err)
	}
	parts := strings.Split(tag.RepositoryStr(), "/")
	if len(parts) < 2 || parts[len(parts)-2] != owner {
		return found, fmt.Errorf("annotation %s: the name does not end with %s/NAME:TAG, so it is not an image of Flotilla", refName, owner)
	}
	found.repository, found.tag = path.Join(parts[len(parts)-2:]...), tag.TagStr()
	return found, found.add(layout, descriptor)
}

// add reads a manifest and all that it refers to.
func (i *image) add(layout fs.FS, descriptor v1.Descriptor) error {
	text, err := readManifest(layout, descriptor)
	if err != nil {
		return err
	}
	switch {
	case descriptor.MediaType.IsIndex():
		index, err := v1.ParseIndexManifest(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("parse index %s: %w", descriptor.Digest, err)
		}
		for _, child := range index.Manifests {
			if child.Platform != nil {
				i.platforms = append(i.platforms, child.Platform.String())
			}
			if err := i.add(layout, child); err != nil {
				return err
			}
		}
	case descriptor.MediaType.IsImage():
		content, err := v1.ParseManifest(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("parse manifest %s: %w", descriptor.Digest, err)
		}
		for _, blob := range append([]v1.Descriptor{content.Config}, content.Layers...) {
			if err := i.addBlob(layout, blob); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("manifest %s has media type %q; an image or an index is required", descriptor.Digest, descriptor.MediaType)
	}
	i.manifests = append(i.manifests, manifest{descriptor: descriptor, text: text})
	return nil
}

func (i *image) addBlob(layout fs.FS, blob v1.Descriptor) error {
	for _, known := range i.blobs {
		if known.Digest == blob.Digest {
			return nil
		}
	}
	info, err := fs.Stat(layout, blobPath(blob.Digest))
	if err != nil {
		return fmt.Errorf("find blob %s: %w", blob.Digest, err)
	}
	if info.Size() != blob.Size {
		return fmt.Errorf("blob %s has %d bytes, but its manifest says %d: the folder is damaged, copy it again", blob.Digest, info.Size(), blob.Size)
	}
	i.blobs = append(i.blobs, blob)
	return nil
}

// readManifest reads a manifest and compares it with its digest: a registry would compute another one for a changed manifest.
func readManifest(layout fs.FS, descriptor v1.Descriptor) ([]byte, error) {
	file, err := layout.Open(blobPath(descriptor.Digest))
	if err != nil {
		return nil, fmt.Errorf("find manifest %s: %w", descriptor.Digest, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, mostOfManifest+1))
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", descriptor.Digest, err)
	}
	if len(text) > mostOfManifest {
		return nil, fmt.Errorf("manifest %s has more than %d bytes", descriptor.Digest, mostOfManifest)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != descriptor.Digest.Hex {
		return nil, fmt.Errorf("manifest %s has another content than its digest says: the folder is damaged, copy it again", descriptor.Digest)
	}
	return text, nil
}

func blobPath(digest v1.Hash) string { return path.Join("blobs", digest.Algorithm, digest.Hex) }
