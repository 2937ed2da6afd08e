package cli_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// Each warning of the API server is on standard error once, whichever clients of a command read it, and in the report.
func TestWarningsOfTheServerAreReportedOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Warning", `299 - "field a is deprecated"`)
		w.Header().Add("Warning", `299 - "policy web warns"`)
		w.Header().Add("Warning", `110 - "the answer is old"`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "1"}}`)
	}))
	defer server.Close()
	for output, reported := range map[cli.Output][]string{
		"": nil, cli.JSON: {"field a is deprecated", "policy web warns"}, cli.YAML: {"field a is deprecated", "policy web warns"},
	} {
		t.Run("-o "+output.String(), func(t *testing.T) {
			var lines bytes.Buffer
			flags := genericclioptions.NewConfigFlags(true)
			flags.APIServer = &server.URL
			streams := genericiooptions.IOStreams{Out: io.Discard, ErrOut: &lines}
			report := &cli.Report{Command: "try"}

			require.NoError(t, cli.Reporting(t.Context(), flags, streams, output, report, func(
				flags genericclioptions.RESTClientGetter, _ genericiooptions.IOStreams, _ *cli.Report,
			) error {
				for range 2 {
					config, err := flags.ToRESTConfig()
					require.NoError(t, err)
					client, err := dynamic.NewForConfig(config)
					require.NoError(t, err)
					nodes := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
					for range 2 {
						_, err = nodes.Get(t.Context(), "1", metav1.GetOptions{})
						require.NoError(t, err)
					}
				}
				return nil
			}))

			assert.Equal(t, "Warning: field a is deprecated\nWarning: policy web warns\n", lines.String())
			assert.Equal(t, reported, report.Warnings)
		})
	}
}
