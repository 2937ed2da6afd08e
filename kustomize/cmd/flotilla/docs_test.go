package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/cli"
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

// The quick start shows what kubectl prints about the manifests.
func TestTheQuickStartListsTheObjectsOfTheManifests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "get-started", "quick-start.md"))
	require.NoError(t, err)
	manifests, code := call(t, "flotilla", "install", "cloneset", "--registry", "registry.example.com/team", "--dry-run=client")
	require.Equal(t, cli.Done, code, manifests)
	var printed []string
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		var object metav1.PartialObjectMetadata
		require.NoError(t, yaml.Unmarshal([]byte(document), &object))
		kind := object.GroupVersionKind().GroupKind()
		kind.Kind = strings.ToLower(kind.Kind)
		printed = append(printed, kind.String()+"/"+object.Name+" serverside-applied\n")
	}
	assert.Greater(t, len(printed), 10)
	assert.Contains(t, string(page), "\n```\n"+strings.Join(printed, "")+"```\n")
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
