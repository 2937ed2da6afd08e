package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	marshal "sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// readPatches reads the documents of files; each names the object that it patches. Errors are misuse.
func readPatches(files []string) ([]string, error) {
	var patches []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, cli.MisuseErrorf("--patch: %s", err)
		}
		own, err := parsePatches(text)
		if err != nil {
			return nil, cli.MisuseErrorf("--patch %s: %s", file, err)
		}
		patches = append(patches, own...)
	}
	return patches, nil
}

// parsePatches returns the documents of a text, each as YAML of its own.
func parsePatches(text []byte) ([]string, error) {
	var patches []string
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text)+1); ; {
		var document unstructured.Unstructured
		err := decoder.Decode(&document.Object)
		if errors.Is(err, io.EOF) {
			return patches, nil
		}
		if err != nil {
			return nil, err
		}
		if len(document.Object) == 0 {
			continue
		}
		if document.GetKind() == "" || document.GetName() == "" {
			return nil, errors.New("a document has no kind or no metadata.name: each document must be a strategic merge patch of one object")
		}
		plain, err := marshal.Marshal(document.Object)
		if err != nil {
			return nil, err
		}
		patches = append(patches, string(plain))
	}
}

// target returns the object that a patch is for.
func target(patch string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	_ = marshal.Unmarshal([]byte(patch), &object.Object) // it was read from there, and an empty object matches no object
	return object
}

// patches returns the patches of a kustomization. One that is for no object of it changes nothing.
func (s Settings) patches() []types.Patch {
	var all []types.Patch
	if s.PullSecret != "" {
		for _, kind := range []string{"Deployment", "DaemonSet"} {
			all = append(all, types.Patch{
				Target: &types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Kind: kind}}},
				Patch:  fmt.Sprintf(`[{"op": "add", "path": "/spec/template/spec/imagePullSecrets", "value": [{"name": %q}]}]`, s.PullSecret),
			})
		}
	}
	for _, patch := range s.Patches {
		object := target(patch)
		all = append(all, types.Patch{
			Target: &types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Kind: object.GetKind()}, Name: object.GetName()}}, Patch: patch,
		})
	}
	return all
}

// patchesOf returns the patches that are for one of the objects.
func patchesOf(patches []string, objects []*unstructured.Unstructured) []string {
	var own []string
	for _, patch := range patches {
		to := target(patch)
		if slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == to.GetKind() && o.GetName() == to.GetName()
		}) {
			own = append(own, patch)
		}
	}
	return own
}

// checkPatches refuses patches for which there is no object.
func checkPatches(patches []string, parts []part) error {
	var objects []*unstructured.Unstructured
	for _, p := range parts {
		if p.name != Namespace {
			objects = append(objects, p.objects...)
		}
	}
	known := patchesOf(patches, objects)
	var unknown []string
	for _, patch := range patches {
		if !slices.Contains(known, patch) {
			unknown = append(unknown, apply.Describe(target(patch)))
		}
	}
	if len(unknown) > 0 {
		return cli.MisuseErrorf("--patch: %s not found in the manifests; to print them: flotilla install FEATURE --dry-run=client", strings.Join(unknown, ", "))
	}
	return nil
}
