package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStepByStep(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	for key, value := range map[string]string{
		"GIT_AUTHOR_NAME": "test", "GIT_AUTHOR_EMAIL": "test@example.com", "GIT_COMMITTER_NAME": "test", "GIT_COMMITTER_EMAIL": "test@example.com",
		"GIT_CONFIG_GLOBAL": os.DevNull,
	} {
		t.Setenv(key, value)
	}
	for _, module := range []string{"core", "test"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, module), 0o755))
		text := "module github.com/flotilla-project/flotilla/" + module + "\n\ngo 1.26.0\n"
		require.NoError(t, os.WriteFile(filepath.Join(root, module, "go.mod"), []byte(text), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.work"), []byte("go 1.26.0\n\nuse (\n\t./core\n\t./test\n)\n"), 0o600))
	git("init", "-q")
	git("add", "-A")
	git("commit", "-q", "-m", "begin")

	says := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), append(args, "--root", root), &out))
		return out.String()
	}
	refuses := func(with string, args ...string) {
		t.Helper()
		assert.EqualError(t, run(t.Context(), append(args, "--root", root), &bytes.Buffer{}), with)
	}
	refuses("what to do? check, plan, prepare, build FOLDER, tag or rehearse FOLDER")
	refuses("nothing is prepared: each version of the changelogs has its tag (release prepare)", "tag")
	refuses("build needs a folder to write", "build")
	refuses("rehearse needs a folder to write", "rehearse")
	assert.Equal(t, "MODULE  FROM  TO      BECAUSE\ncore    -     v0.1.0  first release: no note tells what has changed\n", says("plan"))
	assert.JSONEq(t, `[{"module":"core","to":"v0.1.0","kind":"feature","warning":"no note tells what has changed"}]`, says("plan", "-o", "json"))

	assert.Equal(t, "prepared 1 releases: look at git diff, and commit\n", says("prepare"))
	refuses("a tag names a commit: commit what is prepared first", "tag")
	git("add", "-A")
	git("commit", "-q", "-m", "release")
	assert.Equal(t, "core/v0.1.0\n", says("tag"))
	assert.Equal(t, "nothing has changed since the last releases\n", says("plan"))
}
