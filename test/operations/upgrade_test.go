package operations

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/release/images"
)

// from names the release before this tree: a commit until there is a tag.
var from = flag.String("from", "c52379e216d3", "commit or tag from which the tests upgrade and to which they go back")

// Releases follow each other, and are taken back, without a write to pods that run.
func TestUpgradesAndDowngradesTouchNoPod(t *testing.T) {
	need(t)
	before := checkOut(t, *from)
	f := install(t, before, all(t)...)
	running := givenRunning(t)
	for _, release := range []string{"", before} {
		f.stop(t, all(t)...)
		f = install(t, release, all(t)...)
		tell(t, all(t)...)
		running.areUntouched(t)
	}
	running.update(t)
}

// checkOut puts the tree of a commit into a folder. Copies of the tree without its history have no other commits: there
// the test is skipped.
func checkOut(t *testing.T, commit string) (folder string) {
	t.Helper()
	root, err := images.FindRoot()
	require.NoError(t, err)
	git := func(args ...string) ([]byte, error) {
		return exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput()
	}
	if out, err := git("cat-file", "-e", commit+"^{commit}"); err != nil {
		t.Skipf("this clone does not have commit %s: %s", commit, out)
	}
	folder = filepath.Join(t.TempDir(), "tree")
	require.NoError(t, os.Mkdir(folder, 0o755))
	packed := folder + ".tar"
	out, err := git("archive", "--format=tar", "--output="+packed, commit)
	require.NoError(t, err, string(out))
	out, err = exec.CommandContext(t.Context(), "tar", "-xf", packed, "-C", folder).CombinedOutput()
	require.NoError(t, err, string(out))
	return folder
}
