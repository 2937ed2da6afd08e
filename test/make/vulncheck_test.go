package make

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vulncheck runs the script on modules a and b with a govulncheck that is the text of a script.
func vulncheck(t *testing.T, govulncheck string) (said string, err error) {
	t.Helper()
	script, err := filepath.Abs("../../.make/vulncheck")
	require.NoError(t, err)
	root := t.TempDir()
	for _, module := range []string{"a", "b"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, module), 0o755))
	}
	tool := filepath.Join(root, "govulncheck")
	require.NoError(t, os.WriteFile(tool, []byte("#!/usr/bin/env bash\n"+govulncheck+"\n"), 0o755)) //nolint:gosec // it is a program
	run := exec.CommandContext(t.Context(), script, tool, "file:///db", "a", "b")                   //nolint:gosec // a script of this repository
	run.Dir = root
	out, err := run.CombinedOutput()
	return string(out), err
}

func TestModulesWithoutVulnerabilities(t *testing.T) {
	said, err := vulncheck(t, `[ "$*" = "-db file:///db ./..." ] && [ "$GOWORK" = off ] && echo No vulnerabilities found.`)
	require.NoError(t, err, said)
	assert.Equal(t, "vulncheck a\nvulncheck b\n", said)
}

// All modules are looked at, so that one change of requirements can mend them all.
func TestVulnerabilitiesOfAllModulesAreShown(t *testing.T) {
	said, err := vulncheck(t, `[ "${PWD##*/}" = b ] && exit 0; echo "Vulnerability #1: GO-2026-0001"; exit 3`)
	require.Error(t, err)
	assert.Equal(t, "vulncheck a\nVulnerability #1: GO-2026-0001\nvulncheck b\nvulncheck: there are vulnerabilities, listed above\n", said)
}

// A database that cannot be read is no proof that there are none.
func TestADatabaseThatCannotBeRead(t *testing.T) {
	said, err := vulncheck(t, `echo 'govulncheck: fetching vulnerabilities: Get "https://vuln.go.dev": no such host' >&2; exit 1`)
	require.Error(t, err)
	assert.Contains(t, said, "no such host\nvulncheck: the database file:///db cannot be read, so nothing was checked.")
	assert.Equal(t, 1, strings.Count(said, "vulncheck a\n"))
	assert.NotContains(t, said, "vulncheck b\n")
}

func TestAModuleThatDoesNotCompile(t *testing.T) {
	said, err := vulncheck(t, `echo 'govulncheck: loading packages: There are errors with the provided package patterns' >&2; exit 1`)
	require.Error(t, err)
	assert.NotContains(t, said, "database")
	assert.Contains(t, said, "loading packages")
}
