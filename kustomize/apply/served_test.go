package apply_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// A kind is served when its CRD is established and clients find it in all its versions.
func TestAKindIsServedWhenClientsFindIt(t *testing.T) {
	const (
		path        = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/clonesets.apps.kruise.io"
		definitions = `{"kind": "APIResourceList", "groupVersion": "apiextensions.k8s.io/v1", "resources": [{"name": "customresourcedefinitions", "kind": "CustomResourceDefinition", "verbs": []}]}`
		kinds       = `{"kind": "APIResourceList", "groupVersion": "apps.kruise.io/v1beta1", "resources": [{"name": "clonesets", "kind": "CloneSet", "namespaced": true, "verbs": []}]}`
		others      = `{"kind": "APIResourceList", "groupVersion": "apps.kruise.io/v1beta1", "resources": [{"name": "statefulsets", "kind": "StatefulSet", "namespaced": true, "verbs": []}]}`
		crd         = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "clonesets.apps.kruise.io"},
			"spec": {"group": "apps.kruise.io", "names": {"plural": "clonesets"}, "versions": [{"name": "v1beta1", "served": true}, {"name": "v1alpha1", "served": false}]}`
		established = crd + `, "status": {"conditions": [{"type": "Established", "status": "True"}]}}`
	)
	ours, metrics := group("apps.kruise.io", "v1beta1"), group("metrics.k8s.io", "v1")
	for name, c := range map[string]struct {
		crd, groups, resources string
		served                 bool
	}{
		"a CRD that is new":                       {crd + "}", "", kinds, false},
		"a group that nobody finds":               {established, "", kinds, false},
		"a version that nobody finds":             {established, "," + ours, others, false},
		"a kind that all find":                    {established, "," + ours, kinds, true},
		"an API service of others that is broken": {established, "," + ours + "," + metrics, kinds, true},
	} {
		t.Run(name, func(t *testing.T) {
			says := map[string]string{
				"GET /api":                          `{"kind": "APIVersions", "versions": []}`,
				"GET /apis":                         `{"kind": "APIGroupList", "groups": [` + group("apiextensions.k8s.io", "v1") + c.groups + `]}`,
				"GET /apis/apiextensions.k8s.io/v1": definitions,
				"GET /apis/apps.kruise.io/v1beta1":  c.resources,
				path:                                c.crd,
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				answer, there := says[r.Method+" "+r.URL.Path]
				if !there {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				_, _ = io.WriteString(w, answer)
			}))
			defer server.Close()
			flags := genericclioptions.NewConfigFlags(true)
			cache := t.TempDir()
			flags.APIServer, flags.CacheDir = &server.URL, &cache
			cluster, err := apply.Connect(flags)
			require.NoError(t, err)
			definition := object(t, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: clonesets.apps.kruise.io}")

			served, waitsFor, err := cluster.AllServed([]*unstructured.Unstructured{definition})(t.Context())

			require.NoError(t, err)
			assert.Equal(t, c.served, served)
			if !c.served {
				assert.Equal(t, "CustomResourceDefinition clonesets.apps.kruise.io is not served yet", waitsFor)
			}
		})
	}
}
