package testenv

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Manifests returns the objects in a file, in order. Kustomizations are left out.
func Manifests(t testing.TB, files fs.FS, name string) []*unstructured.Unstructured {
	t.Helper()
	text, err := fs.ReadFile(files, name)
	require.NoError(t, err)
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var all []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err, name)
		if !strings.HasPrefix(object.GetAPIVersion(), "kustomize.config.k8s.io/") {
			all = append(all, object)
		}
	}
}

// ManifestsOf returns the objects of a kind in a file, at least one. Unknown fields fail the test.
func ManifestsOf[T any](t testing.TB, files fs.FS, name, kind string) []T {
	t.Helper()
	var all []T
	for _, manifest := range Manifests(t, files, name) {
		if manifest.GetKind() != kind {
			continue
		}
		var object T
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(manifest.Object, &object, true), name)
		all = append(all, object)
	}
	require.NotEmpty(t, all, "%s in %s", kind, name)
	return all
}

// Install applies the objects in the files that match the patterns, each of which must match one, and waits until the
// bindings among them are in force.
func (e *Environment) Install(t testing.TB, files fs.FS, patterns ...string) {
	t.Helper()
	c := e.Client(t)
	var installed []*unstructured.Unstructured
	for _, pattern := range patterns {
		names, err := fs.Glob(files, pattern)
		require.NoError(t, err)
		require.NotEmpty(t, names, pattern)
		for _, name := range names {
			for _, object := range Manifests(t, files, name) {
				applied := client.ApplyConfigurationFromUnstructured(object)
				require.NoError(t, c.Apply(t.Context(), applied, client.FieldOwner("test"), client.ForceOwnership), name)
				require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), object), name)
				e.share(object)
				installed = append(installed, object)
			}
		}
	}
	e.awaitBindings(t, installed)
}
