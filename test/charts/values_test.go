package charts

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	oci "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmregistry "helm.sh/helm/v4/pkg/registry"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/charts"
)

func TestValuesThatAChartHasNotAreRefusedByTheirPath(t *testing.T) {
	for name, c := range map[string]struct{ chart, given, want string }{
		"a value that is unknown":        {"cloneset", "replica: 2", "additional properties 'replica' not allowed"},
		"a component that is unknown":    {"cloneset", "components: [k3s]", "at '/components/0': value must be one of 'certmanager', 'clientcertificates', 'flowcontrol'"},
		"a component named twice":        {"cloneset", "components: [flowcontrol, flowcontrol]", "at '/components': items at 0 and 1 are equal"},
		"a feature gate that is unknown": {"cloneset", "featureGates: {Typo: true}", "at '/featureGates': additional properties 'Typo' not allowed"},
		"a feature gate that is a word":  {"cloneset", "featureGates: {KruiseDaemon: on please}", "at '/featureGates/KruiseDaemon': got string, want boolean"},
		"a registry with a scheme":       {"cloneset", "registry: https://registry.example.com", "at '/registry': 'https://registry.example.com' does not match pattern"},
		"a digest in a tag":              {"cloneset", "tag: v1@sha256:0", "at '/tag': 'v1@sha256:0' does not match pattern"},
		"a digest that is none":          {"cloneset", "digests: {cloneset-manager: sha256:0}", "at '/digests/cloneset-manager': 'sha256:0' does not match pattern"},
		"a digest of no image":           {"cloneset", "digests: {cloneset: ''}", "at '/digests': additional properties 'cloneset' not allowed"},
		"the namespace of operators":     {"cloneset", "onlyNamespace: flotilla-system", "at '/onlyNamespace': 'not' failed"},
		"replicas below zero":            {"cloneset", "replicas: -1", "at '/replicas': minimum: got -1, want 0"},
		"no registry":                    {"cloneset", "", "set registry, or global.registry, to where the images are: REGISTRY/flotilla/NAME"},
		"a component without CRDs":       {"cloneset-crds", "components: [flowcontrol]", "at '/components/0': value must be"},
		"a feature that is unknown":      {charts.Umbrella, "clonesets: {enabled: true}", "additional properties 'clonesets' not allowed"},
		"a value of a feature":           {charts.Umbrella, "cloneset: {enabled: true, replicas: two}", "at '/replicas': got string, want"},
	} {
		t.Run(name, func(t *testing.T) {
			given := map[string]any{}
			require.NoError(t, yaml.Unmarshal([]byte(c.given), &given))
			_, err := render(t, c.chart, given)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestHelmFindsNoFaultInTheCharts(t *testing.T) {
	all, err := written()
	require.NoError(t, err)
	for name, chart := range all {
		folder := filepath.Join(t.TempDir(), name)
		for _, file := range chart.Files {
			path := filepath.Join(folder, file.Name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
			require.NoError(t, os.WriteFile(path, file.Content, 0o600))
		}
		given := map[string]any{}
		switch {
		case name == charts.Umbrella || name == charts.Definitions:
			given = values(t, "{tags: {all: true}, global: {registry: registry.example.com}}")
		case !strings.HasSuffix(name, "-crds") && name != charts.Base:
			given = values(t, "registry: registry.example.com")
		}
		for _, message := range lint.RunAll(folder, given, catalog.Namespace).Messages {
			if !strings.Contains(message.Error(), "icon is recommended") {
				t.Errorf("chart %s: %s", name, message.Error())
			}
		}
	}
}

// Each chart fits into the Secret in which Helm keeps a release.
func TestChartsAreSmallEnoughForTheRecordOfARelease(t *testing.T) {
	all, err := written()
	require.NoError(t, err)
	const most = 1 << 20
	for name, chart := range all {
		archive, err := chart.Archive()
		require.NoError(t, err)
		// A record has the templates and what they render, and base64 around each.
		assert.Less(t, 5*len(archive), most, name)
	}
}

func TestHelmPullsWhatARegistryHas(t *testing.T) {
	server := httptest.NewServer(oci.New(oci.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	all, err := written()
	require.NoError(t, err)
	content, err := all["cloneset"].Image()
	require.NoError(t, err)
	tag, err := name.NewTag(host + "/flotilla/charts/cloneset:" + all["cloneset"].Version)
	require.NoError(t, err)
	require.NoError(t, remote.Write(tag, content))

	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP())
	require.NoError(t, err)
	pulled, err := client.Pull(tag.Name())
	require.NoError(t, err)
	loaded, err := loader.LoadArchive(bytes.NewReader(pulled.Chart.Data))
	require.NoError(t, err)
	assert.Equal(t, "cloneset", loaded.Name())
	assert.Equal(t, loaded.Metadata.Version, pulled.Chart.Meta.Version)
}
