package apply_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

const (
	widgets    = "/apis/apps.kruise.io/v1beta1/namespaces/a/clonesets/"
	definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clonesets.apps.kruise.io/status"
	migration  = "/apis/storagemigration.k8s.io/v1alpha1/storageversionmigrations/flotilla-clonesets.apps.kruise.io-v1beta1"
)

// answers are what an API server that migrates says, by method and path; what a migration says comes after it was applied.
func answers(ended string) map[string]string {
	return map[string]string{
		"GET /api":  `{"kind": "APIVersions", "versions": []}`,
		"GET /apis": `{"kind": "APIGroupList", "groups": [` + group("apps.kruise.io", "v1beta1") + "," + group("apiextensions.k8s.io", "v1") + "," + group("storagemigration.k8s.io", "v1alpha1") + `]}`,
		// The digest of apps.kruise.io/v1beta1/CloneSet.
		"GET /apis/apps.kruise.io/v1beta1":           `{"kind": "APIResourceList", "resources": [{"name": "clonesets", "kind": "CloneSet", "namespaced": true, "verbs": [], "storageVersionHash": "` + digest + `"}]}`,
		"GET /apis/apiextensions.k8s.io/v1":          `{"kind": "APIResourceList", "resources": [{"name": "customresourcedefinitions", "kind": "CustomResourceDefinition", "verbs": []}]}`,
		"GET /apis/storagemigration.k8s.io/v1alpha1": `{"kind": "APIResourceList", "resources": [{"name": "storageversionmigrations", "kind": "StorageVersionMigration", "verbs": []}]}`,
		"PATCH " + migration:                         `{"apiVersion": "storagemigration.k8s.io/v1alpha1", "kind": "StorageVersionMigration"}`,
		"GET " + migration:                           `{"apiVersion": "storagemigration.k8s.io/v1alpha1", "kind": "StorageVersionMigration", "status": {"conditions": [{"type": "` + ended + `", "status": "True", "message": "no"}]}}`,
		"PATCH " + definition:                        `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}`,
		"GET /apis/apps.kruise.io/v1beta1/clonesets": `{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSetList", "items": [{"kind": "CloneSet", "metadata": {"namespace": "a", "name": "b"}}, {"kind": "CloneSet", "metadata": {"namespace": "a", "name": "gone"}}]}`,
		"PATCH " + widgets + "b/status":              `{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet"}`,
	}
}

const digest = "5iUshgqwyOo="

func group(name, version string) string {
	return `{"name": "` + name + `", "versions": [{"groupVersion": "` + name + "/" + version + `", "version": "` + version + `"}], "preferredVersion": {"groupVersion": "` +
		name + "/" + version + `", "version": "` + version + `"}}`
}

// cloneSets returns the CRD of CloneSets, which stores v1beta1.
func cloneSets(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	return object(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clonesets.apps.kruise.io}
spec: {group: apps.kruise.io, names: {plural: clonesets, kind: CloneSet}, versions: [{name: v1alpha1, storage: false}, {name: v1beta1, storage: true, subresources: {status: {}}}]}`)
}

// Where the cluster has a controller for it, that one migrates; where it does not succeed, or nobody begins, each object is
// patched.
func TestMigrationsAreLeftToTheClusterFirst(t *testing.T) {
	const stored = "PATCH " + definition + ` {"status":{"storedVersions":["v1beta1"]}}`
	for ended, want := range map[string]struct {
		result  string
		patches []string
	}{
		"Succeeded": {"migrated by StorageVersionMigration flotilla-clonesets.apps.kruise.io-v1beta1", []string{stored}},
		"":          {"2 objects migrated", []string{"PATCH " + widgets + "b/status {}", "PATCH " + widgets + "gone/status {}", stored}},
		"Failed":    {"2 objects migrated", []string{"PATCH " + widgets + "b/status {}", "PATCH " + widgets + "gone/status {}", stored}},
	} {
		t.Run(ended, func(t *testing.T) {
			says, applied := answers(ended), ""
			if ended == "" {
				says["GET "+migration] = says["PATCH "+migration] // no condition
			}
			var patches []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				request := r.Method + " " + r.URL.Path
				body, _ := io.ReadAll(r.Body)
				switch {
				case request == "PATCH "+migration:
					applied = string(body)
				case r.Method == http.MethodPatch:
					patches = append(patches, request+" "+string(body))
				}
				w.Header().Set("Content-Type", "application/json")
				answer, there := says[request]
				if !there || request == "GET "+migration && applied == "" {
					w.WriteHeader(http.StatusNotFound)
					answer = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
				}
				_, _ = io.WriteString(w, answer)
			}))
			defer server.Close()
			flags := genericclioptions.NewConfigFlags(true)
			cache := t.TempDir()
			flags.APIServer, flags.CacheDir = &server.URL, &cache
			cluster, err := apply.Connect(flags)
			require.NoError(t, err)

			result, err := apply.Migration{Cluster: cluster, CRD: cloneSets(t), Timeout: time.Minute, Tell: func(string) {}}.Run(t.Context())

			require.NoError(t, err)
			assert.Equal(t, want.result, result)
			assert.Equal(t, want.patches, patches)
			var migrates struct {
				Spec map[string]map[string]string `json:"spec"`
			}
			require.NoError(t, json.NewDecoder(strings.NewReader(applied)).Decode(&migrates))
			assert.Equal(t, map[string]string{"group": "apps.kruise.io", "version": "v1beta1", "resource": "clonesets"}, migrates.Spec["resource"])
		})
	}
}

// A server that does not answer ends the migration at the first object: each other one would wait as long. An error that a
// server answers is one of the object, and the others are tried.
func TestAMigrationEndsWithItsServer(t *testing.T) {
	const after = "store a/b as v1beta1, after 0 of 2 objects: "
	for name, c := range map[string]struct {
		lost    error
		patches int
		says    string
	}{
		"refused":  {syscall.ECONNREFUSED, 1, after},
		"reset":    {syscall.ECONNRESET, 1, after},
		"closed":   {io.ErrUnexpectedEOF, 1, after},
		"answered": {nil, 2, "2 of 2 objects of clonesets.apps.kruise.io could not be stored as v1beta1: "},
	} {
		t.Run(name, func(t *testing.T) {
			says := answers("")
			says["GET /apis"] = `{"kind": "APIGroupList", "groups": [` + group("apps.kruise.io", "v1beta1") + "," + group("apiextensions.k8s.io", "v1") + `]}`
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				answer, there := says[r.Method+" "+r.URL.Path]
				if !there || r.Method == http.MethodPatch {
					w.WriteHeader(http.StatusInternalServerError)
					answer = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "InternalError", "message": "a webhook does not answer", "code": 500}`
				}
				_, _ = io.WriteString(w, answer)
			}))
			defer server.Close()
			flags := genericclioptions.NewConfigFlags(true)
			cache := t.TempDir()
			flags.APIServer, flags.CacheDir = &server.URL, &cache
			patches := 0
			flags.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
				config.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return transport(func(request *http.Request) (*http.Response, error) {
						if request.Method == http.MethodPatch {
							patches++
							if c.lost != nil {
								return nil, c.lost
							}
						}
						return next.RoundTrip(request)
					})
				})
				return config
			})
			cluster, err := apply.Connect(flags)
			require.NoError(t, err)

			// Each wait looks once.
			_, err = apply.Migration{Cluster: cluster, CRD: cloneSets(t), Timeout: time.Nanosecond, Tell: func(string) {}}.Run(t.Context())

			require.ErrorContains(t, err, c.says)
			assert.Equal(t, c.patches, patches)
		})
	}
}

// transport is a function as a transport.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) { return t(request) }
