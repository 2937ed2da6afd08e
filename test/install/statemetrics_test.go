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
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "state-metrics.yaml"))
	require.NoError(t, err)
	type gauge struct {
		Path           []string            `json:"path"`
		NilIsZero      bool                `json:"nilIsZero"`
		LabelsFromPath map[string][]string `json:"labelsFromPath"`
		ValueFrom      []string            `json:"valueFrom"`
	}
	type states struct {
		LabelName string   `json:"labelName"`
		Path      []string `json:"path"`
		List      []string `json:"list"`
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
					Mute int    `json:"errorLogV"`
					Each struct {
						Type   string `json:"type"`
						Gauge  gauge  `json:"gauge"`
						States states `json:"stateSet"`
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
		labels := map[string][]string{"name": {"metadata", "name"}}
		if namespaced(t, r.GroupVersionKind.Kind) {
			labels["namespace"] = []string{"metadata", "namespace"}
		}
		assert.Equal(t, labels, r.LabelsFromPath)
		require.NotEmpty(t, r.Metrics)
		for _, m := range r.Metrics {
			assert.NotEmpty(t, m.Help, m.Name)
			if m.Each.Type == "StateSet" {
				field := at(t, known, m.Each.States.Path...)
				assert.Equal(t, "string", field["type"], m.Name)
				assert.NotEmpty(t, m.Each.States.LabelName, m.Name)
				assert.NotEmpty(t, m.Each.States.List, m.Name)
				continue
			}
			assert.Equal(t, "Gauge", m.Each.Type, m.Name)
			if m.Each.Gauge.Path[0] == "metadata" {
				continue // schemas do not describe metadata
			}
			field := at(t, known, m.Each.Gauge.Path...)
			if m.Each.Gauge.ValueFrom == nil {
				number := field["type"] == "integer" || field["type"] == "boolean" || field["format"] == "date-time"
				assert.True(t, number, "%s is %v", m.Name, field["type"])
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
	for _, crd := range allCRDs(t) {
		assert.True(t, told[kindOf(crd)], "nothing is told of %ss", kindOf(crd))
	}
}

func namespaced(t *testing.T, kind string) bool {
	t.Helper()
	for _, crd := range allCRDs(t) {
		if scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope"); kindOf(crd) == kind {
			return scope == "Namespaced"
		}
	}
	return false
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
