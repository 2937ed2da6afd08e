package operations

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Each feature works on a cluster without the kinds of all others.
func TestEachFeatureWorksAlone(t *testing.T) {
	need(t)
	for _, feature := range all() {
		t.Run(feature, func(t *testing.T) {
			f := install(t, "", feature)
			own := map[string]bool{}
			for _, o := range f[feature].Objects {
				own[o.GetName()] = true
			}
			for _, name := range definitions(t) {
				assert.True(t, own[name], "%s is there", name)
			}
			stories()[feature](t)
		})
	}
}

// definitions returns the names of all our CustomResourceDefinitions that the cluster has.
func definitions(t *testing.T) []string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apiextensions.k8s.io/v1")
	list.SetKind("CustomResourceDefinitionList")
	require.NoError(t, world.Client.List(t.Context(), list))
	var names []string
	for _, o := range list.Items {
		if strings.HasSuffix(o.GetName(), ".kruise.io") {
			names = append(names, o.GetName())
		}
	}
	require.NotEmpty(t, names)
	return names
}
