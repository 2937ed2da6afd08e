package scale

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// root is the folder of the repository.
const root = "../.."

// given copies files of the repository into a folder of the test.
func given(t *testing.T, files ...string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	return folder
}

func TestTheDocsShowThePublishedRecord(t *testing.T) {
	files := []string{page}
	for _, p := range pictures() {
		files = append(files, p.file())
	}
	folder := given(t, append(files, published)...)
	require.NoError(t, Publish(folder))
	for _, name := range files {
		want, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		have, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(have), "%s is not of its record: run make generate", name)
	}
}

func TestThePublishedRecordKeepsTheExactBounds(t *testing.T) {
	bounds, err := BoundsOfRecord()
	require.NoError(t, err)
	run, err := ReadRecord(filepath.Join(root, published))
	require.NoError(t, err)
	verdicts, err := bounds.Judge(run)
	require.NoError(t, err)
	assert.Empty(t, brokenBounds(verdicts))
}

func TestAPageWithoutItsLinesIsRefused(t *testing.T) {
	folder := given(t, published, page)
	require.NoError(t, os.WriteFile(filepath.Join(folder, page), []byte("# Performance\n"), 0o600))
	assert.ErrorContains(t, Publish(folder), `"<!-- gate publish: run -->" and "<!-- end of run -->" are required`)
}

func TestTheTableHasTheMeansOfAllRounds(t *testing.T) {
	row := func(load, controller string, round, creates int) Row {
		return Row{
			Load: load, Controller: controller, Round: round, Pods: 10, Events: 3,
			Writes: map[string]int{"create pods": creates, "patch sets/status": 4}, Reads: map[string]int{"list pods": 2, "watch pods": 9},
			Costs: map[string]Cost{controller: {CPU: 0.02 * float64(round), MemoryMiB: 40 + round}},
		}
	}
	first, second := row("up", "cloneset-manager", 1, 10), row("up", "cloneset-manager", 2, 20)
	first.ToReady, first.ToReadyP90, first.ToReadyP99 = 0.5, 0.9, 1
	second.ToReady, second.ToReadyP90, second.ToReadyP99 = 0.7, 1.1, 1.2
	run := Record{Commit: "0123456789abcdef", Pods: 10, Rounds: 2, Features: map[string][]Row{"cloneset": {
		{Load: "idle", Round: 1, Done: 30}, row("built-in up", "kube-controller-manager", 1, 10), first,
		{Load: "idle", Round: 2, Done: 30}, row("built-in up", "kube-controller-manager", 2, 10), second,
	}}}
	assert.Contains(t, run.table(), ": means of 2 rounds.\n")
	assert.Contains(t, run.table(), "---|\n| built-in up | 10 | 1 | 4 |  | 3 | 0 |  | 3.00 ms | 42 MiB |\n"+
		"| up | 10 | 1.5 | 4 | 2 | 3 | 0 | 0.60, 1.00, 1.10 s | 3.00 ms | 42 MiB |\n")
	for name, bars := range map[string]string{
		"writes": "- color: grey\n    name: built-in up\n    value: 1\n  - color: blue\n    name: up\n    value: 1.5\n",
		"start":  "bars:\n  - color: blue\n    name: up\n    value: 0.6\n",
		"cpu":    "- color: grey\n    name: built-in up\n    value: 3\n  - color: blue\n    name: up\n    value: 3\n",
	} {
		i := slices.IndexFunc(pictures(), func(p picture) bool { return p.name == name })
		text, err := run.plot(pictures()[i])
		require.NoError(t, err)
		assert.Contains(t, string(text), bars, name)
	}
}
