package testenv

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Words returns what the first group of the pattern matches in the files, at least one: the words that a feature's page
// must explain. Files is a pattern of path/filepath.
func Words(t testing.TB, files, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(files)
	require.NoError(t, err)
	var words []string
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			words = append(words, match[1])
		}
	}
	require.NotEmpty(t, words, "%s in %s", pattern, files)
	return words
}
