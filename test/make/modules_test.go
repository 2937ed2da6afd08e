package make

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Modules stand alone, and every reason that users read is in a list that a page explains. make verify checks it as well.
func TestModulesKeepTheRules(t *testing.T) {
	check := exec.CommandContext(t.Context(), "go", "run", "./cmd/modcheck", "..")
	check.Dir, check.Env = "../../.tools", append(os.Environ(), "GOWORK=off")
	faults, err := check.CombinedOutput()
	assert.NoError(t, err, "%s", faults)
}
