package install_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// The API server warns of a field of two managers in the same words: a user reads it once, and a program finds it in the report.
func TestWarningsOfTheServerAreReported(t *testing.T) {
	clitest.NeedsServer(t)
	t.Cleanup(func() { remove(t, "cloneset", "jobs", "--delete-crds", "--yes") })
	var patches []string
	for _, manager := range []string{"cloneset-manager", "jobs-manager"} {
		patches = append(patches, `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "`+manager+`", "namespace": "flotilla-system"},
			"spec": {"template": {"spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}}}}`)
	}
	file := filepath.Join(t.TempDir(), "patch.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(patches, "\n---\n")), 0o600))

	report, lines, code := reportOf(t, "install", "cloneset", "jobs", "--wait=false", "--patch", file)

	require.Equal(t, cli.Done, code, lines)
	const warning = `spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`
	assert.Equal(t, []string{warning}, report.Warnings)
	assert.Equal(t, 1, strings.Count(lines, "Warning: "+warning+"\n"), lines)
	assert.Equal(t, map[string]cli.Action{"Deployment cloneset-manager": cli.Created, "Deployment jobs-manager": cli.Created}, actions(report, "Deployment"))
}
