package make

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// quiet runs a script by .make/quiet, away from a terminal, and returns what is shown.
func quiet(t *testing.T, script string) (shown string, err error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../../.make/quiet", "building it", "bash", "-c", script).CombinedOutput()
	return string(out), err
}

func TestNoiseIsNotShown(t *testing.T) {
	shown, err := quiet(t, "echo go: downloading example.com/module v1.0.0 >&2; echo noise")
	require.NoError(t, err)
	assert.Empty(t, shown)
}

// Whoever has to mend something sees all of it, and the exit code is that of the command.
func TestErrorsAreShownWhole(t *testing.T) {
	shown, err := quiet(t, "echo first; echo second >&2; exit 7")
	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended)
	assert.Equal(t, 7, ended.ExitCode())
	assert.Equal(t, "building it failed:\nfirst\nsecond\n", shown)
}
