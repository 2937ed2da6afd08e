package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	marshal "sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/render"
)

// Namespace is where operators run.
const Namespace = catalog.Namespace

// folder is where the kustomization of the settings is, as if it was in a folder next to the modules.
const folder = "installation"

// Kustomization returns the file that a user would have written to install a feature with the settings; the namespace, which
// all features share, is apart.
func Kustomization(feature catalog.Feature, settings Settings) types.Kustomization {
	kustomization := types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{"../" + feature.Name + "/config/default"},
		// Labels of pods keep the values of the manifests: a change of the tool that applies them is no reason to restart a
		// manager.
		Labels: []types.Label{{Pairs: map[string]string{
			"app.kubernetes.io/managed-by": "flotilla",
			"app.kubernetes.io/part-of":    "flotilla",
			"app.kubernetes.io/version":    settings.label(feature),
		}}},
	}
	for _, name := range feature.Images {
		tag, digest := settings.reference(feature, name)
		kustomization.Images = append(kustomization.Images, types.Image{
			Name:    name,
			NewName: settings.image(name),
			NewTag:  tag,
			Digest:  digest,
		})
	}
	// A component may be named twice, or together with the feature gate that it turns on. kustomize refuses its objects twice.
	add := func(folder string) {
		if !slices.Contains(kustomization.Components, folder) {
			kustomization.Components = append(kustomization.Components, folder)
		}
	}
	for _, component := range settings.Components {
		if slices.Contains(Shared(), component) {
			add("../kustomize/components/" + component)
		}
		// A shared component may have a part of each feature, under the same name.
		if slices.Contains(feature.Components, component) && !slices.Contains(feature.Defaults, component) {
			add("../" + feature.Name + "/config/" + component)
		}
	}
	for _, component := range settings.withoutFor(feature) {
		kustomization.Patches = append(kustomization.Patches, types.Patch{
			Target: &types.Selector{ResId: resid.ResId{Name: feature.GrantOf(component)}},
			Patch:  "{apiVersion: v1, kind: any, metadata: {name: any}, $patch: delete}",
		})
	}
	for _, gate := range settings.Gates[feature.Name] {
		if component, has := feature.Gate(gate.Name); has && gate.On {
			add("../" + feature.Name + "/config/" + component)
			continue
		}
		kustomization.Patches = append(kustomization.Patches, types.Patch{
			Target: &types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Kind: "Deployment"}, Name: feature.Name + "-manager"}},
			Patch: fmt.Sprintf(`[{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--feature-gates=%s=%t"}]`,
				gate.Name, gate.On),
		})
	}
	kustomization.Patches = append(kustomization.Patches, settings.patches()...)
	if settings.OnlyNamespace != "" {
		restrict(&kustomization, settings.OnlyNamespace)
	}
	return kustomization
}

// Manifests renders the objects of a feature with the settings, which the manager's Deployment remembers.
func Manifests(feature catalog.Feature, settings Settings) ([]*unstructured.Unstructured, error) {
	text, err := marshal.Marshal(Kustomization(feature, settings))
	if err != nil {
		return nil, fmt.Errorf("write the kustomization of %s: %w", feature.Name, err)
	}
	objects, err := rendered.of(feature, text)
	if err != nil {
		return nil, err
	}
	dropEmptyArguments(objects)
	mark(objects, feature)
	settings.Patches = patchesOf(settings.Patches, objects)
	if err := remember(objects, feature, settings); err != nil {
		return nil, err
	}
	return objects, nil
}

// dropEmptyArguments removes lists of arguments that no component has appended to. The server stores none, and where kubectl has
// applied the manifests as they are, none and an empty list are values of two managers.
func dropEmptyArguments(objects []*unstructured.Unstructured) {
	path := []string{"spec", "template", "spec", "containers"}
	for _, object := range objects {
		containers, found, _ := unstructured.NestedSlice(object.Object, path...)
		if !found {
			continue
		}
		for _, container := range containers {
			fields, _ := container.(map[string]any)
			if arguments, ok := fields["args"].([]any); ok && len(arguments) == 0 {
				delete(fields, "args")
			}
		}
		_ = unstructured.SetNestedSlice(object.Object, containers, path...) // it was read from there
	}
}

// Base renders the object that all features share: the namespace.
func Base() ([]*unstructured.Unstructured, error) {
	tree, err := catalog.Tree()
	if err != nil {
		return nil, fmt.Errorf("lay out the base: %w", err)
	}
	objects, err := build(tree, "kustomize/base")
	if err != nil {
		return nil, fmt.Errorf("render the base: %w", err)
	}
	return objects, nil
}

func build(tree render.Tree, what string) ([]*unstructured.Unstructured, error) {
	var renderer render.Renderer
	manifests, err := renderer.Build(tree, what)
	if err != nil {
		return nil, err
	}
	return decode(manifests)
}

func decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	const buffer = 4096
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), buffer); ; {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode the manifests: %w", err)
		}
		objects = append(objects, object)
	}
}
