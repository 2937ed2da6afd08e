// Package docs checks that a page of the documentation has the words that users read elsewhere.
//
// Pages and files of other modules belong to the repository: in a module that was downloaded alone such tests are skipped.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Page is the text of a page.
type Page struct {
	t    testing.TB
	text string
}

// Feature is the page of a feature, such as cloneset, followed by pages that features share, such as reference/conditions.
// It skips the test as File does.
func Feature(t testing.TB, name string, shared ...string) Page {
	t.Helper()
	text := File(t, "docs/features/"+name+".md")
	for _, page := range shared {
		text = append(text, File(t, "docs/"+page+".md")...)
	}
	return Page{t, string(text)}
}

// File is a file of the repository, such as daemon/config/webhook/mutating.yaml. It skips the test where there is no
// repository (go.work) around the module.
func File(t testing.TB, name string) []byte {
	t.Helper()
	root, err := os.Getwd()
	require.NoError(t, err)
	for ; ; root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			t.Skip("the module stands alone: " + name + " is in the repository")
		}
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return text
}

// Example is a block of YAML of the page.
type Example struct {
	// Patches is the name of the object that the YAML is a merge patch for; empty for a whole object.
	Patches string
	YAML    string
}

// Examples returns the blocks of YAML in their order. A comment "# patch NAME" in the first line makes one a patch.
func (p Page) Examples() []Example {
	p.t.Helper()
	var all []Example
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(p.text, -1) {
		example := Example{YAML: block[1]}
		if patch := regexp.MustCompile(`^# patch (\S+)\n`).FindStringSubmatch(block[1]); patch != nil {
			example.Patches = patch[1]
		}
		all = append(all, example)
	}
	require.NotEmpty(p.t, all)
	return all
}

// Names asserts that the page names each of the words.
func (p Page) Names(lists ...[]string) {
	p.t.Helper()
	p.has("`", lists)
}

// Quotes asserts that the page has text that begins with each of the messages.
func (p Page) Quotes(lists ...[]string) {
	p.t.Helper()
	p.has("", lists)
}

func (p Page) has(end string, lists [][]string) {
	p.t.Helper()
	for _, list := range lists {
		assert.NotEmpty(p.t, list)
		for _, word := range list {
			assert.Contains(p.t, p.text, "`"+word+end)
		}
	}
}
