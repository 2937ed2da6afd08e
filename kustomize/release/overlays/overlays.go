package overlays

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flotilla-project/flotilla/kustomize/render"

	"github.com/flotilla-project/flotilla/kustomize/release/images"
)

// Manifests renders the overlay of a feature, with the images pinned by digest. They are pulled from the registry, which may have
// a path: ghcr.io/someone. The references of the images may begin with it. Without a registry they have no host. Components are
// folders of components, such as "spread/config/required".
func Manifests(registry, feature string, built []images.Image, components ...string) ([]byte, error) {
	pins, err := Pins(registry, built)
	if err != nil {
		return nil, err
	}
	var with strings.Builder
	for _, c := range components {
		fmt.Fprintf(&with, "- ../%s\n", c)
	}
	manifests, err := Render("", "resources: [../kustomize/overlays/"+feature+"]\ncomponents:\n"+with.String()+pins)
	if err != nil {
		return nil, fmt.Errorf("render overlay %s: %w", feature, err)
	}
	return manifests, nil
}

// Render renders a kustomization as if it was in a folder next to the modules of the work tree at root. An empty root is this work
// tree.
func Render(root, kustomization string) ([]byte, error) {
	if root == "" {
		var err error
		if root, err = images.FindRoot(); err != nil {
			return nil, err
		}
	}
	folders, err := render.Folders(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	folders["local"] = fstest.MapFS{"kustomization.yaml": {Data: []byte(kustomization)}}
	tree, err := render.NewTree(folders)
	if err != nil {
		return nil, err
	}
	var renderer render.Renderer
	return renderer.Build(tree, "local")
}

// Pins returns the part of a kustomization that names each image's digest, and its registry if there is one.
func Pins(registry string, built []images.Image) (string, error) {
	pins := strings.Builder{}
	for _, image := range built {
		reference, err := name.ParseReference(strings.TrimPrefix(image.Reference, registry+"/"))
		if err != nil {
			return "", fmt.Errorf("pin image %s: %w", image.Reference, err)
		}
		repository := reference.Context().RepositoryStr()
		fmt.Fprintf(&pins, "- {name: %s, newName: %s, digest: %q}\n", repository, path.Join(registry, repository), image.Digest)
	}
	if pins.Len() == 0 {
		return "", nil
	}
	return "images:\n" + pins.String(), nil
}

// Objects returns the objects of the manifests, in their order.
func Objects(manifests []byte) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
		var o unstructured.Unstructured
		err := documents.Decode(&o)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode the manifests: %w", err)
		}
		objects = append(objects, o)
	}
}
