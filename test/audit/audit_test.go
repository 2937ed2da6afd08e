package audit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/test/audit"
)

const lines = `{"verb":"patch","user":{"username":"me"},"requestURI":"/api/v1/namespaces/a/pods/x/status","objectRef":{"resource":"pods","subresource":"status","name":"x"},"responseStatus":{"code":409}}
{"verb":"create","requestURI":"/api/v1/podtemplates?dryRun=All","objectRef":{"resource":"podtemplates"},"responseStatus":{"code":201}}
{"verb":"get","requestURI":"/apis/apps/v1/deployments","objectRef":{"resource":"deployments","apiGroup":"apps"},"responseStatus":{"code":200}}
{"verb":"cre`

func TestTheLogIsReadOnAndUnfinishedLinesAreLeft(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
	log := &audit.Log{Path: file}
	all := func(audit.Request) bool { return true }
	first, err := log.Read(all)
	require.NoError(t, err)
	var kinds []string
	for _, r := range first {
		kinds = append(kinds, r.Kind())
	}
	assert.Equal(t, []string{"patch pods/status", "create podtemplates", "get deployments"}, kinds)
	assert.Equal(t, "me", first[0].User.Name)
	assert.Equal(t, 409, first[0].Response.Code)

	second, err := log.Read(all)
	require.NoError(t, err)
	assert.Empty(t, second)
	require.NoError(t, log.Skip())
	third, err := log.Read(all)
	require.NoError(t, err)
	assert.Empty(t, third)

	again, err := (&audit.Log{Path: file}).Read(audit.Request.IsWrite)
	require.NoError(t, err)
	require.Len(t, again, 1, "reads and dry runs write nothing")
	assert.Equal(t, "pods/status", again[0].Resource())
}
