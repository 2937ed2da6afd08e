package docs

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// measure is a kind of words that make a page hard to read, and how many of them a thousand words may have.
type measure struct {
	name    string
	words   *regexp.Regexp
	ceiling float64
}

func measures() []measure {
	words := func(text string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b(` + text + `)\b`) }
	return []measure{
		{"what: name the thing", words(`what`), 1},
		{"negations: say what happens", words(`no|not|never|nor|nothing|none|cannot|\w+n't`), 12},
		{"software shows, reports and sets: it tells nobody", words(`tells?|told|says?|said`), 1},
		{"whose, that of: repeat the noun", words(`whose|whom|that of|those of`), 0.3},
		{"other words", words(`anew|for ever|besides?|meanwhile|nobody|somebody|whoever|whomever|ill|regret|mended|goes on|go on|` +
			`holds? up|holding up|comes? into`), 0},
	}
}

// exempt are the pages that do not keep the measures yet: remove a page from the list when it does.
func exempt() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(`
	`) {
		all[name] = true
	}
	return all
}

var (
	indented = regexp.MustCompile(`(?m)^ {4,}.*$`)
	quoted   = regexp.MustCompile("`[^`\n]*`")
	target   = regexp.MustCompile(`\]\([^)]*\)`)
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	word     = regexp.MustCompile(`[\p{L}\p{N}][\w'./%-]*`)
)

// proseOf returns the text of a page without its code, headings and the targets of its links.
func proseOf(text string) string {
	for _, left := range []*regexp.Regexp{comment, code, indented, heading} {
		text = left.ReplaceAllString(text, "")
	}
	return target.ReplaceAllString(quoted.ReplaceAllString(text, "X"), "] ")
}

// breaches returns the measures that a page does not keep, with the words.
func breaches(text string) map[string][]string {
	return exceeded(measures(), text)
}

// exceeded returns those of some measures that a text does not keep, with the words.
func exceeded(all []measure, text string) map[string][]string {
	text = proseOf(text)
	thousands := float64(len(word.FindAllString(text, -1))) / 1000
	found := map[string][]string{}
	for _, m := range all {
		if words := m.words.FindAllString(text, -1); len(words) > int(math.Ceil(m.ceiling*thousands)) {
			found[m.name] = words
		}
	}
	return found
}

// Users read these pages once: they keep to plain words.
func TestPagesForUsersAreInPlainWords(t *testing.T) {
	all, left := pages(t), exempt()
	for name := range all {
		if name != "README.md" && !strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "docs/decisions/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		require.NoError(t, err)
		found := breaches(string(text))
		if left[name] {
			assert.NotEmpty(t, found, "%s keeps the measures: it is exempt no longer", name)
			continue
		}
		assert.Empty(t, found, name)
	}
	for name := range left {
		assert.Contains(t, all, name, "no such page is exempt")
	}
}

func TestProseIsMeasuredWithoutCode(t *testing.T) {
	assert.Empty(t, breaches("# What it tells\n\nIt shows `what` [it](what.md) has.\n\n    nobody says\n\n```\nwhose\n```\n<!-- told\nanew -->\n"))
	assert.Equal(t, map[string][]string{"other words": {"Somebody"}}, breaches("Somebody has it."))
	assert.Contains(t, breaches("It tells you what is told, and who said what."), "what: name the thing")
	assert.Empty(t, breaches(strings.Repeat("a word of many ", 250)+"not never"), "two of a thousand words")
	assert.Empty(t, breaches(strings.Repeat("a word of many ", 25)+"not never"), "two of a hundred")
	assert.Len(t, breaches(strings.Repeat("a word of many ", 25)+"not never no"), 1, "three of a hundred")
}
