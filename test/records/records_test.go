package records

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCommitsAreShort(t *testing.T) {
	for given, want := range map[string]string{
		"0123456789abcdef": "0123456789ab", "0123456789abcdef-dirty": "0123456789ab-dirty", "abc": "abc", "": "",
	} {
		assert.Equal(t, want, Short(given))
	}
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	written := map[string]string{"a": "b"}
	file, err := Write(filepath.Join(t.TempDir(), "new"), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "0123456789abcdef", written)
	require.NoError(t, err)
	assert.Equal(t, "20260102T030405Z-0123456789ab.json", filepath.Base(file))
	var read map[string]string
	require.NoError(t, Read(file, &read))
	assert.Equal(t, written, read)
	require.NoError(t, os.WriteFile(file, []byte("no JSON"), 0o600))
	assert.ErrorContains(t, Read(file, &read), "decode record "+file)
}

func TestOnlyThePublishedPartIsReplaced(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "page.md")
	require.NoError(t, os.WriteFile(file, []byte("# Page\n<!-- tool publish: run -->\nold\n<!-- end of run -->\nend\n"), 0o600))
	require.NoError(t, Publish(root, "page.md", "tool", "new\n"))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "# Page\n<!-- tool publish: run -->\n\nnew\n\n<!-- end of run -->\nend\n", string(text))
	assert.ErrorContains(t, Publish(root, "page.md", "other", "new\n"), `page.md: the lines "<!-- other publish: run -->" and "<!-- end of run -->" are required`)
}
