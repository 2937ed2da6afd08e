package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// longest is how many words a page may have that users read from the begin to the end, with its examples.
const longest = 2000

// searched are longer: readers search them for one text, key or symptom, and skip the rest.
func searched() []string {
	return []string{"docs/operate/troubleshooting.md", "docs/reference/labels-and-annotations.md"}
}

// telling is how long a row of a table or a paragraph without a link must be to be a fact that belongs to one page.
const telling = 130

// A page about everything is several pages: a tutorial, a how-to, a reference, an explanation.
func TestPagesAreShort(t *testing.T) {
	read := 0
	for name := range pages(t) {
		folder, _ := filepath.Split(name)
		switch folder {
		case "docs/concepts/", "docs/features/", "docs/get-started/", "docs/guides/", "docs/install/", "docs/migrate/", "docs/operate/", "docs/reference/":
		default:
			continue
		}
		read++
		words := len(strings.Fields(text(t, name)))
		if slices.Contains(searched(), name) {
			assert.Greater(t, words, longest, "%s is short: it is an exception no longer", name)
			continue
		}
		assert.LessOrEqual(t, words, longest, "%s has too many words: split it", name)
	}
	assert.Greater(t, read, 20)
}

// What two pages say drifts apart: one of them says it, and the other one links to it.
func TestFactsAreOnOnePage(t *testing.T) {
	at := map[string]string{}
	for name := range pages(t) {
		if !strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "docs/decisions/") || strings.HasPrefix(name, "docs/api/") {
			continue
		}
		for _, fact := range facts(text(t, name)) {
			other, known := at[fact]
			assert.False(t, known && other != name, "%s and %s both have: %s", name, other, fact)
			at[fact] = name
		}
	}
	assert.Greater(t, len(at), 100)
}

// facts returns the long paragraphs and rows of tables that lead to no other page.
func facts(text string) []string {
	var all []string
	for block := range strings.SplitSeq(indented.ReplaceAllString(code.ReplaceAllString(text, ""), ""), "\n\n") {
		parts := []string{strings.Join(strings.Fields(block), " ")}
		if strings.HasPrefix(parts[0], "|") {
			parts = strings.Split(block, "\n")
		}
		for _, part := range parts {
			if len(part) >= telling && !strings.Contains(part, "](") {
				all = append(all, part)
			}
		}
	}
	return all
}

func TestFactsAreLongAndWithoutLinks(t *testing.T) {
	long := strings.Repeat("pods ", 30)
	assert.Equal(t, []string{strings.TrimSpace(long) + " more", "| " + long + "|"},
		facts("short\n\n"+long+"\nmore\n\n[a](b.md) "+long+"\n\n| a |\n|---|\n| "+long+"|\n\n```\n"+long+"\n```\n\n    "+long+"\n"))
}

func text(t *testing.T, name string) string {
	t.Helper()
	read, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(read)
}

// A reader comes from a search, with the kind in hand, and must know what to install.
func TestPagesOfKindsNameTheFeatureToInstall(t *testing.T) {
	line := regexp.MustCompile(`(?m)^\[Install\]\(\.\./install/install\.md\) features? (.*)\.$`)
	read := 0
	for name := range pages(t) {
		if !strings.HasPrefix(name, "docs/features/") {
			continue
		}
		read++
		found := line.FindStringSubmatch(text(t, name))
		if !assert.NotEmpty(t, found, "%s does not name the feature to install", name) {
			continue
		}
		for feature := range strings.SplitSeq(found[1], " and ") {
			feature = strings.Trim(feature, "`")
			assert.True(t, exists(filepath.Join(root, feature, "config", "feature.yaml")), "%s: there is no feature %s", name, feature)
		}
	}
	assert.Greater(t, read, 10)
}

// A reader who chooses features finds each of them on the pages that compare them.
func TestPagesThatCompareFeaturesHaveAll(t *testing.T) {
	descriptions, err := filepath.Glob(filepath.Join(root, "*", "config", "feature.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, descriptions)
	for _, page := range []string{"docs/get-started/concepts.md", "docs/concepts/when-an-operator-is-down.md"} {
		for _, description := range descriptions {
			feature := filepath.Base(filepath.Dir(filepath.Dir(description)))
			row := regexp.MustCompile("(?m)^\\|[^|]*`" + feature + "`[^|]*\\|")
			assert.True(t, row.MatchString(text(t, page)), "%s has no row of feature %s", page, feature)
		}
	}
}
