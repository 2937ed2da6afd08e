package charts

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// manifestsOf returns the objects of the blocks of YAML of a page.
func manifestsOf(t *testing.T, page string) []object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
	require.NoError(t, err)
	var all []object
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
		all = append(all, decode(t, strings.NewReader(string(block[1])))...)
	}
	return all
}

// The manifests of the page name charts that a release has, and values that these charts have.
func TestManifestsForFluxAndArgoCDRender(t *testing.T) {
	field := func(o object, at ...string) string {
		value, found, err := unstructured.NestedString(o.Object, at...)
		require.NoError(t, err)
		require.True(t, found, "%s %s has %s", o.GetKind(), o.GetName(), strings.Join(at, "."))
		return value
	}
	const repository = "ghcr.io/flotilla-project/flotilla/charts"
	sources, rendered := map[string]string{}, map[string]int{}
	for _, o := range manifestsOf(t, "docs/install/helm.md") {
		given, chart := map[string]any{}, ""
		switch o.GetKind() {
		case "OCIRepository":
			url := field(o, "spec", "url")
			assert.Equal(t, "oci://"+repository, strings.TrimSuffix(url, "/"+path.Base(url)))
			assert.Equal(t, "application/vnd.cncf.helm.chart.content.v1.tar+gzip", field(o, "spec", "layerSelector", "mediaType"))
			sources[o.GetName()] = path.Base(url)
			continue
		case "HelmRelease":
			chart = sources[field(o, "spec", "chartRef", "name")]
			given, _, _ = unstructured.NestedMap(o.Object, "spec", "values")
		case "Application":
			assert.Equal(t, repository, field(o, "spec", "source", "repoURL"))
			chart = field(o, "spec", "source", "chart")
			given, _, _ = unstructured.NestedMap(o.Object, "spec", "source", "helm", "valuesObject")
		default:
			t.Errorf("%s %s is neither of Flux nor of Argo CD", o.GetKind(), o.GetName())
		}
		objects, err := render(t, chart, given)
		require.NoError(t, err, "%s %s", o.GetKind(), o.GetName())
		assert.NotEmpty(t, objects)
		rendered[o.GetKind()]++
	}
	assert.Equal(t, map[string]int{"HelmRelease": 2, "Application": 2}, rendered)
}
