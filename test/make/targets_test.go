package make

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
)

// A module within another one has the targets of every module. make takes a slash in a name for the end of a folder.
func TestEachModuleHasTargets(t *testing.T) {
	text, err := os.ReadFile("../../go.work")
	require.NoError(t, err)
	work, err := modfile.ParseWork("go.work", text, nil)
	require.NoError(t, err)
	require.NotEmpty(t, work.Use)
	for _, module := range work.Use {
		for target, want := range map[string]string{"build": "go build ./...", "test": "./test/run module "} {
			shown, err := exec.CommandContext(t.Context(), "make", "-C", "../..", "-n", target+"-"+module.Path[len("./"):]).CombinedOutput()
			require.NoError(t, err, "%s", shown)
			assert.Contains(t, string(shown), want)
		}
	}
}
