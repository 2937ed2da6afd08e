package simulate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// UpdateGolden is the environment variable that makes CompareStory write its file if it is 1.
const UpdateGolden = "UPDATE_GOLDEN"

// CompareStory compares the story with the file, such as testdata/rollout.txt.
func CompareStory(t testing.TB, w *World, path string) {
	t.Helper()
	if os.Getenv(UpdateGolden) == "1" {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(w.Story()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "%s=1 writes it", UpdateGolden)
	require.Equal(t, string(want), w.Story(), "%s=1 writes it anew", UpdateGolden)
}
