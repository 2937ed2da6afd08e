package make

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whoever names a feature runs the stories of that feature.
func TestEachFeatureHasASuite(t *testing.T) {
	descriptions, err := filepath.Glob("../../*/config/feature.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, descriptions)
	for _, description := range descriptions {
		feature := filepath.Base(filepath.Dir(filepath.Dir(description)))
		assert.FileExists(t, filepath.Join("..", "e2e", feature, "suite_test.go"))
	}
}

func TestASuiteThatIsNotThereStartsNoCluster(t *testing.T) {
	root := given(t)
	write(t, root, "test/e2e/a/suite_test.go", "package a\n")
	write(t, root, "test/e2e/b/suite_test.go", "package b\n")
	run := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "test/run"), "e2e", "nowhere") //nolint:gosec // a folder of the test

	out, err := run.CombinedOutput()

	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended)
	assert.Equal(t, 2, ended.ExitCode())
	assert.Equal(t, "there is no suite nowhere: use one of a b\n", string(out))
}
