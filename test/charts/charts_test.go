package charts

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/charts"
)

// registry is what tests name as the registry of images.
const registry = "registry.example.com/team"

// version is the version of the umbrella charts in tests.
const version = "v0.1.0"

// written are the charts by name, which all tests share.
var written = sync.OnceValues(func() (map[string]charts.Chart, error) {
	all, err := charts.All(version, "")
	by := map[string]charts.Chart{}
	for _, c := range all {
		by[c.Name] = c
	}
	return by, err
})

// load returns a chart as Helm reads it from its archive.
func load(t *testing.T, name string) *chart.Chart {
	t.Helper()
	all, err := written()
	require.NoError(t, err)
	require.Contains(t, all, name)
	archive, err := all[name].Archive()
	require.NoError(t, err)
	loaded, err := loader.LoadArchive(bytes.NewReader(archive))
	require.NoError(t, err)
	return loaded
}

// values are what a user gives a chart, by YAML.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	var all map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &all))
	return all
}

// render renders a chart as helm template does.
func render(t *testing.T, name string, given map[string]any) ([]object, error) {
	t.Helper()
	install := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler)))
	install.DryRunStrategy, install.ReleaseName, install.Namespace = action.DryRunClient, name, catalog.Namespace
	install.KubeVersion = &common.KubeVersion{Version: "v1.37.0", Major: "1", Minor: "37"}
	released, err := install.Run(load(t, name), given)
	if err != nil {
		return nil, err
	}
	return decode(t, strings.NewReader(released.(*release.Release).Manifest)), nil //nolint:forcetypeassert // Helm has no other
}

// object is an object as JSON has it.
type object = *unstructured.Unstructured

func decode(t *testing.T, manifests io.Reader) []object {
	t.Helper()
	var all []object
	const buffer = 4096
	for documents := yaml.NewYAMLOrJSONDecoder(manifests, buffer); ; {
		found := &unstructured.Unstructured{}
		err := documents.Decode(&found.Object)
		if err == io.EOF { //nolint:errorlint // the decoder returns it as it is
			return all
		}
		require.NoError(t, err)
		if len(found.Object) > 0 {
			all = append(all, found)
		}
	}
}

// plain returns objects by kind and name, all numbers as JSON has them.
func plain(t *testing.T, objects []object) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, o := range objects {
		text, err := json.Marshal(o.Object)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(text, &fields))
		id := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		require.NotContains(t, all, id)
		all[id] = fields
	}
	return all
}
