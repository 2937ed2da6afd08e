package install

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func labelled(kind, version string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
	object.SetLabels(map[string]string{"app.kubernetes.io/version": version, "app.kubernetes.io/part-of": "flotilla"})
	return object
}

// The newest of what is live counts: the CRDs stay when an operator goes.
func TestStepsBetweenVersions(t *testing.T) {
	cases := []struct {
		name        string
		live        []*unstructured.Unstructured
		to          string
		down, skips bool
	}{
		{"nothing there", nil, "v0.1.0", false, false},
		{"the same", []*unstructured.Unstructured{labelled("Deployment", "v0.1.0")}, "v0.1.0", false, false},
		{"the next", []*unstructured.Unstructured{labelled("Deployment", "v0.1.0")}, "v0.2.0", false, false},
		{"one left out", []*unstructured.Unstructured{labelled("Deployment", "v0.1.0")}, "v0.3.0", false, true},
		{"an older one", []*unstructured.Unstructured{labelled("Deployment", "v0.3.0")}, "v0.1.0", true, false},
		{"older than a CRD that stayed", []*unstructured.Unstructured{labelled("CustomResourceDefinition", "v0.3.0")}, "v0.1.0", true, false},
		{"older than one of two", []*unstructured.Unstructured{labelled("CustomResourceDefinition", "v0.3.1"), labelled("Deployment", "v0.1.0")}, "v0.3.0", true, false},
		{"own images of the same", []*unstructured.Unstructured{labelled("Deployment", "v0.1.0")}, "v0.1.0-team", false, false},
		{"no version", []*unstructured.Unstructured{labelled("Deployment", "latest")}, "v0.1.0", false, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			step := stepOf(c.live, []*unstructured.Unstructured{labelled("Deployment", c.to)})
			assert.Equal(t, c.down, step.down())
			assert.Equal(t, c.skips, step.skips())
		})
	}
}
