package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Commands of the documentation exist, with these flags, and those on lines of their own with as many arguments. Those of
// the page of rollouts are run by package rollout.
func TestEveryCommandOfTheDocsCanBeTyped(t *testing.T) {
	command := regexp.MustCompile("(?m)^    flotilla ([^\n]*)$|`flotilla ([^`\n]*)`")
	typed := 0
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "README.md", "kustomize/README.md"} {
		pages, err := filepath.Glob(filepath.Join("..", "..", "..", filepath.FromSlash(pattern)))
		require.NoError(t, err)
		for _, page := range pages {
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			for _, found := range command.FindAllStringSubmatch(string(text), -1) {
				typed++
				if err := parse(strings.Fields(found[1]+found[2]), found[1] != ""); err != nil {
					t.Errorf("%s: %s: %v", page, found[0], err)
				}
			}
		}
	}
	assert.Greater(t, typed, 40)
}

// parse finds the command and parses what follows, up to a comment or a redirection; a whole command has its arguments.
func parse(args []string, whole bool) error {
	for i, arg := range args {
		if arg == "#" || arg == ">" {
			args = args[:i]
			break
		}
	}
	root := newRoot("flotilla", genericiooptions.IOStreams{})
	root.InitDefaultCompletionCmd()
	found, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := found.ParseFlags(rest); err != nil || !whole {
		return err
	}
	return found.ValidateArgs(found.Flags().Args())
}
