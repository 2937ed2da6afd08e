package drain

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/flotilla-project/flotilla/kustomize/cli"
)

// Warnings of the API server are on standard error once, and in the report.
func TestWarningsOfTheServerAreReported(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Warning", `299 - "policy web warns"`)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	}))
	defer server.Close()
	flags := genericclioptions.NewConfigFlags(true)
	flags.APIServer = &server.URL
	var out, lines bytes.Buffer
	command := NewCommand(flags, genericiooptions.IOStreams{Out: &out, ErrOut: &lines})
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs([]string{"node-1", "--dry-run", "-o", "json"})

	err := command.ExecuteContext(t.Context())

	require.Error(t, err)
	var report cli.Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &report), out.String())
	assert.Equal(t, "failed", report.Verdict)
	assert.Equal(t, []string{"policy web warns"}, report.Warnings)
	assert.Equal(t, "Warning: policy web warns\n", lines.String())
}
