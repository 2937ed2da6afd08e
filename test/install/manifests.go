package install

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

	"github.com/flotilla-project/flotilla/test/images"
)

// Manifests renders the overlay of a feature of this work tree. The images are pinned by digest, so that exactly the
// images that were just built run.
func Manifests(feature string, built ...images.Image) ([]byte, error) {
	return ManifestsFrom("", feature, built...)
}

// ManifestsFrom renders like Manifests, with images from a registry, which may have a path: ghcr.io/someone. The references of
// the images may begin with it.
func ManifestsFrom(registry, feature string, built ...images.Image) ([]byte, error) {
	return manifestsWith(nil, registry, feature, built)
}

// manifestsWith renders like ManifestsFrom, with components that are named by their folders, such as "spread/config/required".
func manifestsWith(components []string, registry, feature string, built []images.Image) ([]byte, error) {
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

// Render renders a kustomization as if it was in a folder beside the modules of the work tree; without one, of this
// one.
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

// labelled returns the manifests with a label NAME=VALUE of each object.
func labelled(manifests []byte, label string) ([]byte, error) {
	if label == "" {
		return manifests, nil
	}
	objects, err := Objects(manifests)
	if err != nil {
		return nil, err
	}
	name, value, _ := strings.Cut(label, "=")
	var all bytes.Buffer
	for _, o := range objects {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[name] = value
		o.SetLabels(labels)
		text, err := o.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		all.Write(append(text, '\n'))
	}
	return all.Bytes(), nil
}

// workloads returns the Deployments and DaemonSets among the manifests, as kubectl names them.
func workloads(manifests []byte) ([]string, error) {
	objects, err := Objects(manifests)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, o := range objects {
		if kind := o.GetKind(); kind == "Deployment" || kind == "DaemonSet" {
			found = append(found, strings.ToLower(kind)+"/"+o.GetName())
		}
	}
	return found, nil
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
