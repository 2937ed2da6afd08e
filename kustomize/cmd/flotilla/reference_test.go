package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// sections returns the parts of the reference of commands, by title.
func sections(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, page := range []string{"cli.md", "cli-workloads.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", page))
		require.NoError(t, err)
		for _, section := range strings.Split(string(text), "\n## ")[1:] {
			title, body, _ := strings.Cut(section, "\n")
			found[title] = body
		}
	}
	return found
}

// hasFlags holds the table of a section to flags: each has a row with its name, its short form and its default.
func hasFlags(t *testing.T, title, section string, flags *pflag.FlagSet) {
	t.Helper()
	row := regexp.MustCompile("(?m)^\\| (`--?.*?) \\| (.*?) ?\\|")
	name := regexp.MustCompile("`(--?[a-z-]+)`")
	defaults := map[string]string{}
	for _, match := range row.FindAllStringSubmatch(section, -1) {
		for _, found := range name.FindAllStringSubmatch(match[1], -1) {
			assert.NotContains(t, defaults, found[1], "%s: two rows", title)
			defaults[found[1]] = strings.Trim(match[2], "`")
		}
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "help" || flag.Hidden {
			return
		}
		value, ok := defaults["--"+flag.Name]
		assert.True(t, ok, "%s: --%s is missing", title, flag.Name)
		delete(defaults, "--"+flag.Name)
		if flag.Shorthand != "" {
			assert.Contains(t, defaults, "-"+flag.Shorthand, "%s: -%s is missing", title, flag.Shorthand)
			delete(defaults, "-"+flag.Shorthand)
		}
		if flag.Name != "cache-dir" { // of the user's home
			assert.Equal(t, plainDefault(flag), value, "%s: default of --%s", title, flag.Name)
		}
	})
	assert.Empty(t, defaults, "%s: there are no such flags", title)
}

// plainDefault is the default of a flag as the page writes it: nothing for an empty list, 3m for 3m0s.
func plainDefault(flag *pflag.Flag) string {
	switch {
	case flag.DefValue == "[]":
		return ""
	case flag.DefValue == "0s":
		return "0"
	case flag.Value.Type() == "duration":
		return strings.Replace(flag.DefValue, "m0s", "m", 1)
	}
	return flag.DefValue
}

// The reference has each command with its usage and its flags, and no other one.
func TestTheReferenceHasTheCommands(t *testing.T) {
	root := newRoot("flotilla", genericiooptions.IOStreams{})
	left := sections(t)
	hasFlags(t, "every command", left["Flags of every command"], root.PersistentFlags())
	delete(left, "Flags of every command")
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		for _, child := range command.Commands() {
			title := child.CommandPath()
			section, ok := left[title]
			if !assert.True(t, ok, "there is no section %s", title) {
				continue
			}
			delete(left, title)
			assert.Contains(t, section, "\n```\n"+strings.TrimSuffix(child.UseLine(), " [flags]")+"\n```\n", title)
			hasFlags(t, title, section, child.LocalFlags())
			if child.Name() != "completion" { // one command for each shell
				visit(child)
			}
		}
	}
	visit(root)
	assert.Empty(t, left, "there are no such commands")
}
