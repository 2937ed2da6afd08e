package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

var example = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```")

// schemas returns those of the versions of all CRDs, by apiVersion and kind.
func schemas(t *testing.T) map[string]*schema.Structural {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "*", "config", "crd", "*.yaml"))
	require.NoError(t, err)
	found := map[string]*schema.Structural{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.Unmarshal(text, &crd), file)
		for _, version := range crd.Spec.Versions {
			var props apiextensions.JSONSchemaProps
			require.NoError(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &props, nil))
			structural, err := schema.NewStructural(&props)
			require.NoError(t, err, file)
			found[crd.Spec.Group+"/"+version.Name+" "+crd.Spec.Names.Kind] = structural
		}
	}
	return found
}

// Pages of features have their examples applied by the features' own tests. Those of all other pages have no field that the CRDs
// do not have.
func TestExamplesFitTheCRDs(t *testing.T) {
	known, read := schemas(t), 0
	for name := range pages(t) {
		if !strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "docs/features/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		require.NoError(t, err)
		for _, block := range example.FindAllStringSubmatch(string(text), -1) {
			var object unstructured.Unstructured
			require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n")), &object.Object), name)
			crd, ok := known[object.GetAPIVersion()+" "+object.GetKind()]
			if !ok {
				continue
			}
			read++
			unknown := pruning.PruneWithOptions(object.Object, crd, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
			assert.Empty(t, unknown, "%s: fields that no CRD has", name)
		}
	}
	assert.Greater(t, read, 1)
}
