package cloneset_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/cloneset/setup"
)

// Users look up in the feature's page what conditions, events and the command line say.
func TestThePageExplainsEveryWord(t *testing.T) {
	page, err := os.ReadFile("../../../docs/features/cloneset.md")
	require.NoError(t, err)
	explained := func(word string) { assert.Contains(t, string(page), "`"+word+"`") }

	operator := setup.Operator()
	for _, gate := range operator.Gates {
		explained(string(gate))
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	operator.Flags(flags)
	flags.VisitAll(func(f *pflag.Flag) { explained("--" + f.Name) })
	for _, words := range []struct{ files, pattern string }{
		{"plan/*.go", `Wait\("(\w+)"`},
		{"plan/*.go", `\bevent\w+ += "(\w+)"`},
		{"plan/status.go", `(?:Reason: |s\.Reason, s\.Message = )"(\w+)"`},
		{"../../api/v1beta1/cloneset_conditions.go", `= "(\w+)"`},
		{"../../../core/inplace/refresh.go", `Reason\w+ += "(\w+)"`},
	} {
		found := wordsIn(t, words.files, words.pattern)
		require.NotEmpty(t, found, words.pattern)
		for _, word := range found {
			explained(word)
		}
	}
}

func wordsIn(t *testing.T, files, pattern string) []string {
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
	return words
}
