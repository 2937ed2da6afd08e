package make

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// compiler stands in for go: a target called FuzzBad fails and leaves an input.
const compiler = `#!/bin/sh
echo "go: downloading x"
case "$*" in
*FuzzBad*) mkdir -p testdata/fuzz/FuzzBad; echo 'string("x")' > testdata/fuzz/FuzzBad/1; echo "--- FAIL: FuzzBad"; exit 1 ;;
esac
echo "fuzz: elapsed: 3s, execs: 7 (2/sec)"
echo "$KUBEBUILDER_ASSETS$*" >> "$RAN"
`

func TestFuzzRunsEachTargetAndNamesThoseThatFail(t *testing.T) {
	root := given(t)
	write(t, root, "bin/go", compiler)
	write(t, root, "a/x/fuzz_test.go", "package x\n\nfunc FuzzGood(f *testing.F) {\n}\n\nfunc FuzzBad(f *testing.F) {\n}\n")
	write(t, root, "b/b_test.go", "package b\n\nfunc FuzzOther(f *testing.F) {\n}\n\nfunc TestFuzz(t *testing.T) {\n}\n")
	ran := filepath.Join(root, "ran")
	fuzz := func(target string) (string, error) {
		run := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "test/run"), "fuzz") //nolint:gosec // a folder of the test
		run.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"), "DURATION=3s", "TARGET="+target, "RAN="+ran, "KUBEBUILDER_ASSETS=x")
		out, err := run.CombinedOutput()
		return string(out), err
	}

	out, err := fuzz("Good|Other")
	require.NoError(t, err, out)
	assert.Equal(t, "passed a/x FuzzGood, execs: 7\npassed b FuzzOther, execs: 7\n2 targets, 0 failed\n", out)
	commands, err := os.ReadFile(ran)
	require.NoError(t, err)
	assert.Equal(t, "test -run ^$ -fuzz ^FuzzGood$ -fuzztime 3s .\ntest -run ^$ -fuzz ^FuzzOther$ -fuzztime 3s .\n", string(commands))

	out, err = fuzz("")
	require.Error(t, err, "a target has failed")
	assert.Contains(t, out, "failed a/x FuzzBad")
	assert.Contains(t, out, `string("x")`, "the input is shown")
	assert.Contains(t, out, "3 targets, 1 failed\n")

	out, err = fuzz("nowhere")
	require.Error(t, err)
	assert.Equal(t, "no target matches nowhere\n", out)
}
