package install

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
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

// A manager whose flags name another Lease leaves that one behind, too.
func TestWhatAManagerLeavesBehind(t *testing.T) {
	manager := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": Namespace, "name": "jobs-manager"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"args": []any{"--leader-election-id=mine"}},
		}}}},
	}}
	names := func(live ...*unstructured.Unstructured) []string {
		var all []string
		for _, object := range leftovers(catalog.Feature{Name: "jobs"}, live) {
			all = append(all, apply.Describe(object))
		}
		return all
	}
	usual := []string{"Secret flotilla-system/jobs-webhook-certs", "Secret flotilla-system/jobs-webhook-ca", "Lease flotilla-system/jobs-manager"}
	assert.Equal(t, usual, names())
	assert.Equal(t, append(usual, "Lease flotilla-system/mine"), names(manager))
}
