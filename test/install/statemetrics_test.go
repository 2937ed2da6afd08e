package install

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// The fields that kube-state-metrics is configured to read exist in the kind's schema.
func TestStateMetricsReadWhatTheKindsHave(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "state-metrics.yaml"))
	require.NoError(t, err)
	type gauge struct {
		Path           []string            `json:"path"`
		NilIsZero      bool                `json:"nilIsZero"`
		LabelsFromPath map[string][]string `json:"labelsFromPath"`
		ValueFrom      []string            `json:"valueFrom"`
	}
	var config struct {
		Kind string `json:"kind"`
		Spec struct {
			Resources []struct {
				GroupVersionKind schema.GroupVersionKind `json:"groupVersionKind"`
				LabelsFromPath   map[string][]string     `json:"labelsFromPath"`
				Metrics          []struct {
					Name string `json:"name"`
					Help string `json:"help"`
					Each struct {
						Type  string `json:"type"`
						Gauge gauge  `json:"gauge"`
					} `json:"each"`
				} `json:"metrics"`
			} `json:"resources"`
		} `json:"spec"`
	}
	require.NoError(t, yaml.UnmarshalStrict(text, &config))
	assert.Equal(t, "CustomResourceStateMetrics", config.Kind)
	told := map[string]bool{}
	for _, r := range config.Spec.Resources {
		told[r.GroupVersionKind.Kind] = true
		known := schemaOf(t, r.GroupVersionKind)
		assert.Equal(t, map[string][]string{"namespace": {"metadata", "namespace"}, "name": {"metadata", "name"}}, r.LabelsFromPath)
		require.NotEmpty(t, r.Metrics)
		for _, m := range r.Metrics {
			assert.NotEmpty(t, m.Help, m.Name)
			assert.Equal(t, "Gauge", m.Each.Type, m.Name)
			if m.Each.Gauge.Path[0] == "metadata" {
				continue // schemas do not describe metadata
			}
			field := at(t, known, m.Each.Gauge.Path...)
			if m.Each.Gauge.ValueFrom == nil {
				assert.Equal(t, "integer", field["type"], m.Name)
				continue
			}
			assert.Equal(t, "array", field["type"], m.Name)
			item := field["items"].(map[string]any)
			at(t, item, m.Each.Gauge.ValueFrom...)
			for _, path := range m.Each.Gauge.LabelsFromPath {
				at(t, item, path...)
			}
		}
	}
	assert.Equal(t, rolledOut(t), told, "kinds that are rolled out")
}

// rolledOut returns the kinds of the features that move their pods from one revision to the next.
func rolledOut(t *testing.T) map[string]bool {
	t.Helper()
	kinds := map[string]bool{}
	for _, crd := range allCRDs(t) {
		for _, version := range versions(crd) {
			known := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
			spec := known["properties"].(map[string]any)["spec"].(map[string]any)
			if _, ok := spec["properties"].(map[string]any)["updateStrategy"]; ok {
				kinds[kindOf(crd)] = true
			}
		}
	}
	return kinds
}

// schemaOf returns the schema of the kind in the CRD that one of the features installs.
func schemaOf(t *testing.T, kind schema.GroupVersionKind) map[string]any {
	t.Helper()
	for _, crd := range allCRDs(t) {
		for _, version := range versions(crd) {
			if kindOf(crd) == kind.Kind && version["name"] == kind.Version {
				return version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
			}
		}
	}
	require.Fail(t, "nobody installs it", "%s", kind)
	return nil
}

// allCRDs returns the CustomResourceDefinitions of all features.
func allCRDs(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	var all []unstructured.Unstructured
	for _, f := range features(t) {
		all = append(all, crds(f.overlay)...)
	}
	return all
}

func kindOf(crd unstructured.Unstructured) string {
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return kind
}

// at returns the schema of the field at the path.
func at(t *testing.T, known map[string]any, path ...string) map[string]any {
	t.Helper()
	for _, name := range path {
		properties, _ := known["properties"].(map[string]any)
		field, ok := properties[name].(map[string]any)
		require.True(t, ok, "there is no %v: %s", path, name)
		known = field
	}
	return known
}
