package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/kustomize/release"
)

// tree is a repository with a workspace.
type tree struct {
	t    *testing.T
	root string
}

func given(t *testing.T) tree {
	t.Helper()
	w := tree{t: t, root: t.TempDir()}
	w.write("go.work", "go 1.26.0\n\nuse (\n\t./core\n\t./fleet\n\t./fleet/api\n\t./test\n\t./test/charts\n)\n")
	for _, module := range []string{"core", "fleet", "fleet/api", "test", "test/charts"} {
		text := "module github.com/flotilla-project/flotilla/" + module + "\n\ngo 1.26.0\n"
		if module == "fleet" {
			text += "\nrequire (\n\tgithub.com/flotilla-project/flotilla/core v0.1.0\n\tgithub.com/flotilla-project/flotilla/fleet/api v0.1.0\n)\n"
		}
		w.write(module+"/go.mod", text)
	}
	w.git("init", "-q")
	w.commit()
	return w
}

func (w tree) write(file, text string) {
	w.t.Helper()
	file = filepath.Join(w.root, file)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(w.t, os.WriteFile(file, []byte(text), 0o600))
}

func (w tree) read(file string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.root, file))
	require.NoError(w.t, err)
	return string(text)
}

func (w tree) git(args ...string) {
	w.t.Helper()
	out, err := exec.CommandContext(w.t.Context(), "git", append([]string{
		"-C", w.root, "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false",
	}, args...)...).CombinedOutput()
	require.NoError(w.t, err, string(out))
}

func (w tree) commit() {
	w.t.Helper()
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "change")
}

func (w tree) plan() []release.Release {
	w.t.Helper()
	modules, err := release.Read(w.t.Context(), w.root)
	require.NoError(w.t, err)
	plan, err := release.Plan(modules)
	require.NoError(w.t, err)
	return plan
}

func names(plan []release.Release) []string {
	var all []string
	for _, r := range plan {
		all = append(all, r.Tag())
	}
	return all
}

func TestReleasesOfAWorkTree(t *testing.T) {
	w := given(t)
	assert.Equal(t, []string{"core/v0.1.0", "fleet/api/v0.1.0", "fleet/v0.1.0"}, names(w.plan()), "test is never released")
	for _, tag := range names(w.plan()) {
		w.git("tag", tag)
	}
	assert.Empty(t, w.plan())

	w.write("fleet/README.md", "read me")
	w.write("fleet/fleet_test.go", "package fleet_test")
	w.commit()
	assert.Empty(t, w.plan(), "users get neither")

	w.write("fleet/api/types.go", "package api")
	w.write("fleet/api/.changes/fix-types.md", "Types are\nright.\n")
	w.commit()
	plan := w.plan()
	assert.Equal(t, []string{"fleet/api/v0.1.1", "fleet/v0.1.1"}, names(plan))
	assert.Equal(t, []release.Note{{Kind: release.Fix, Text: "Types are right."}}, plan[0].Notes)
	assert.Equal(t, []string{"fleet/api"}, plan[1].Follows)

	w.git("tag", "fleet/v0.10.0")
	w.git("tag", "fleet/api/v0.9.0")
	w.write("core/core.go", "package core")
	w.commit()
	assert.Equal(t, []string{"core/v0.1.1", "fleet/v0.10.1"}, names(w.plan()), "versions are numbers, and modules have their own")
}

// The module that releases is within the module of the command, and users of the command do not get it. It requires what is
// released, as the tests do.
func TestModulesOfTestsAndReleasesHaveNoVersion(t *testing.T) {
	w := given(t)
	w.write("go.work", "go 1.26.0\n\nuse (\n\t./core\n\t./kustomize\n\t./kustomize/release\n\t./test\n\t./test/charts\n)\n")
	const requirement = "\nrequire github.com/flotilla-project/flotilla/core v"
	unreleased := []string{"kustomize/release", "test", "test/charts"}
	for _, module := range append([]string{"kustomize"}, unreleased...) {
		w.write(module+"/go.mod", "module github.com/flotilla-project/flotilla/"+module+"\n\ngo 1.26.0\n"+requirement+"0.1.0\n")
	}
	w.commit()
	assert.Equal(t, []string{"core/v0.1.0", "kustomize/v0.1.0"}, names(w.plan()))
	for _, tag := range names(w.plan()) {
		w.git("tag", tag)
	}

	w.write("kustomize/release/release.go", "package release")
	w.commit()
	assert.Empty(t, w.plan(), "the command has not changed")

	w.write("core/core.go", "package core")
	w.commit()
	require.NoError(t, release.Prepare(w.root, w.plan(), time.Now()))
	for _, module := range unreleased {
		assert.Contains(t, w.read(module+"/go.mod"), requirement+"0.1.1\n")
	}
}

func TestNotesAreFolded(t *testing.T) {
	w := given(t)
	w.write("core/CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n- Lines that\n  go on.\n\n## v0.0.9 (2026-01-02)\n\n- First.\n")
	w.write("core/.changes/breaking-names.md", "Names differ.\n")
	w.commit()
	plan := w.plan()
	date := time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC)
	require.NoError(t, release.Prepare(w.root, plan, date))
	assert.Equal(t, "# Changelog\n\n## Unreleased\n\n## v0.1.0 (2026-11-23)\n\n- **Breaking:** Names differ.\n- Lines that go on.\n\n"+
		"## v0.0.9 (2026-01-02)\n\n- First.\n", w.read("core/CHANGELOG.md"))
	assert.NoDirExists(t, filepath.Join(w.root, "core", ".changes"))
	assert.Equal(t, "# Changelog\n\n## Unreleased\n\n## v0.1.0 (2026-11-23)\n\n- Built with the new versions of core, fleet/api.\n", w.read("fleet/CHANGELOG.md"))
}

func TestModulesRequireWhatIsReleased(t *testing.T) {
	w := given(t)
	for _, tag := range names(w.plan()) {
		w.git("tag", tag)
	}
	w.write("core/core.go", "package core")
	w.write("core/.changes/feature-more.md", "More.")
	w.commit()
	require.NoError(t, release.Prepare(w.root, w.plan(), time.Now()))
	assert.Contains(t, w.read("fleet/go.mod"), "require (\n\tgithub.com/flotilla-project/flotilla/core v0.2.0\n\tgithub.com/flotilla-project/flotilla/fleet/api v0.1.0\n)")
	w.commit()
	prepared, err := release.Prepared(t.Context(), w.root)
	require.NoError(t, err)
	assert.Equal(t, []release.Release{{Module: "core", From: "v0.1.0", To: "v0.2.0"}, {Module: "fleet", From: "v0.1.0", To: "v0.1.1"}}, prepared)
	for _, tag := range names(prepared) {
		w.git("tag", tag)
	}
	prepared, err = release.Prepared(t.Context(), w.root)
	require.NoError(t, err)
	assert.Empty(t, prepared)
	assert.Empty(t, w.plan())
}

// What is installed has the version that is released: flotilla status compares it, and images are pulled by it.
func TestManifestsNameTheReleasedVersion(t *testing.T) {
	w := given(t)
	w.write("fleet/config/feature.yaml", "# Why.\nversion: v0.1.0 # raised\ncrds: [fleets]\n")
	w.write("fleet/config/default/kustomization.yaml", "# Generated.\nresources: [../crd]\nlabels:\n- pairs:\n    app.kubernetes.io/version: v0.1.0\n"+
		"images:\n- name: flotilla/fleet-manager\n  newTag: v0.1.0\n- name: flotilla/fleet-agent\n  newTag: v0.1.0\n")
	w.commit()
	for _, tag := range names(w.plan()) {
		w.git("tag", tag)
	}
	w.write("fleet/fleet.go", "package fleet")
	w.write("fleet/.changes/feature-more.md", "More.")
	w.commit()
	require.NoError(t, release.Prepare(w.root, w.plan(), time.Now()))
	assert.Equal(t, "# Why.\nversion: v0.2.0 # raised\ncrds: [fleets]\n", w.read("fleet/config/feature.yaml"))
	assert.Equal(t, "# Generated.\nresources: [../crd]\nlabels:\n- pairs:\n    app.kubernetes.io/version: v0.2.0\n"+
		"images:\n- name: flotilla/fleet-manager\n  newTag: v0.2.0\n- name: flotilla/fleet-agent\n  newTag: v0.2.0\n", w.read("fleet/config/default/kustomization.yaml"))
}

func TestANoteWithAWrongName(t *testing.T) {
	for _, name := range []string{"names.md", "follow-core.md", "fix-names.txt"} {
		w := given(t)
		w.write("core/.changes/"+name, "What?")
		_, err := release.Read(t.Context(), w.root)
		assert.ErrorContains(t, err, "names are breaking-TOPIC.md, feature-TOPIC.md or fix-TOPIC.md", name)
	}
}

// worktrees returns the work trees of the repository.
func (w tree) worktrees() string {
	w.t.Helper()
	out, err := exec.CommandContext(w.t.Context(), "git", "-C", w.root, "worktree", "list").Output() //nolint:gosec // a folder of the test
	require.NoError(w.t, err)
	return string(out)
}
