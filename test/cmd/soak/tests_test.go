package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTestsThatPlayWorldsAreFound(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a_test.go"), []byte(`package a
func TestPlain(t *testing.T) { help(t) }
func TestEach(t *testing.T) { seeds.Each(t, 3, nil) }
func TestThroughAnotherFile(t *testing.T) { explore(t, nil) }
func help(t *testing.T) { help(t) }
`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b_test.go"), []byte(`package a
func explore(t *testing.T, faults any) { simulate.Walk{Count: 3}.Run(t) }
`), 0o600))
	tests, err := findTests(dir, []string{"a_test.go", "b_test.go"})
	require.NoError(t, err)
	assert.Equal(t, []string{"TestEach", "TestThroughAnotherFile"}, tests)
}

func TestReportsAreReadAmongOtherLines(t *testing.T) {
	r, found := readReport("--- FAIL: TestX/8\n  story\n\nwalked {\"test\":\"TestX\",\"from\":7,\"worlds\":9,\"failed\":[8]}\nFAIL\n")
	assert.True(t, found)
	assert.Equal(t, report{From: 7, Worlds: 9, Failed: []uint64{8}}, r)
	_, found = readReport("panic: no\n")
	assert.False(t, found)
}
