package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// module makes a module whose tests print the events, and returns its folder.
func module(t *testing.T, events ...string) string {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "events"), []byte(strings.Join(events, "\n")+"\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "Makefile"), []byte("test: ; @echo $(TESTFLAGS) >>flags; cat events\n"), 0o600))
	return folder
}

func TestFailedTestsAreListed(t *testing.T) {
	good := module(t, `{"Action":"run","Package":"p","Test":"TestA"}`, `{"Action":"pass","Package":"p","Test":"TestA"}`, `{"Action":"pass","Package":"p"}`)
	bad := module(t, `{"Action":"run","Package":"q","Test":"TestB"}`, `{"Action":"output","Package":"q","Test":"TestB","Output":"why\n"}`,
		`{"Action":"fail","Package":"q","Test":"TestB"}`, `{"Action":"fail","Package":"q"}`)
	logs := t.TempDir()
	var out strings.Builder
	err := run(t.Context(), []string{"--times=7", "--seed=40", "--load=1", "--folder=" + logs, good, bad}, &out)
	require.EqualError(t, err, "1 tests failed at least once")
	assert.Contains(t, out.String(), "| "+bad+" | q.TestB | 2 of 7 | 40, 41 | "+filepath.Join(logs, "q.TestB-40-1.log")+" |\n")
	assert.NotContains(t, out.String(), "TestA")

	flags, err := os.ReadFile(filepath.Join(good, "flags"))
	require.NoError(t, err)
	assert.Equal(t, "-json -count=5 -shuffle=40\n-json -count=2 -shuffle=41\n", string(flags))
	log, err := os.ReadFile(filepath.Join(logs, "q.TestB-40-1.log"))
	require.NoError(t, err)
	assert.Equal(t, "-shuffle=40\n\nwhy\n\nthe tests of the package in the order in which they began:\nfail TestB\n", string(log))
}

func TestModulesWithoutTestsAreNoSuccess(t *testing.T) {
	assert.ErrorContains(t, run(t.Context(), []string{"--times=1", module(t)}, &strings.Builder{}), "no test ran")
}
