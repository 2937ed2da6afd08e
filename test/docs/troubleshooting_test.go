package docs

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const troubleshooting = "docs/operate/troubleshooting.md"

var (
	cell = regexp.MustCompile(`(?m)^\| (.*?) \|`)
	span = regexp.MustCompile("`([^`]+)`")
	// ofTrouble are the names of reasons that say that something waits or has failed.
	ofTrouble = regexp.MustCompile(`^Wait|Fail|Missing$|Unavailable$|GivenUp$|Forbidden$|NotServed$|NotInstalled$|Invalid|Unreadable|NotFound$|Refused$`)
)

// quotes returns the texts in the first column of the tables of a page.
func quotes(t *testing.T, name string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	var found []string
	for _, match := range cell.FindAllStringSubmatch(string(page), -1) {
		for _, quote := range span.FindAllStringSubmatch(match[1], -1) {
			found = append(found, quote[1])
		}
	}
	return found
}

// Users search for the text that they see: each text of the page is one that the code writes.
func TestTroubleshootingQuotesTheCode(t *testing.T) {
	words, long := map[string]bool{}, []string{}
	for _, file := range sources(t) {
		for _, text := range file.texts() {
			words[text] = true
			long = append(long, text)
		}
	}
	all := strings.Join(long, "\x00")
	found := quotes(t, troubleshooting)
	assert.Greater(t, len(found), 150)
	for _, quote := range found {
		if !strings.ContainsAny(quote, " "+gap) {
			assert.True(t, words[quote], "nothing in the code has the value %q", quote)
			continue
		}
		if !strings.Contains(all, quote) { // not by an assertion, which would print all of the code
			t.Errorf("nothing in the code writes %q", quote)
		}
	}
}

// The page has every reason of a wait or a failure, every message that is a constant beside them, and every reason for which
// flotilla explain has a remedy.
func TestTroubleshootingHasTheReasons(t *testing.T) {
	listed, found := map[string]bool{}, quotes(t, troubleshooting)
	for _, quote := range found {
		listed[quote] = true
	}
	together := strings.Join(found, "\x00")
	all := sources(t)
	reasons := 0
	for name, values := range constants(all, func(s source) bool { return path.Base(s.path) == "reasons.go" || path.Base(s.path) == "messages.go" }) {
		for _, value := range values {
			switch {
			case strings.Contains(value, " "):
				assert.True(t, !strings.HasPrefix(name, "Message") || strings.Contains(together, value), "message %q (%s)", value, name)
			case ofTrouble.MatchString(name):
				reasons++
				assert.True(t, listed[value], "reason %s (%s)", value, name)
			}
		}
	}
	assert.Greater(t, reasons, 70)
	for _, file := range all {
		if file.path != "kustomize/explain/reasons.go" {
			continue
		}
		ast.Inspect(file.File, func(node ast.Node) bool {
			if clause, ok := node.(*ast.CaseClause); ok {
				for _, value := range clause.List {
					if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
						assert.True(t, listed[plain(literal)], "flotilla explain has a remedy for %s", literal.Value)
					}
				}
			}
			return true
		})
	}
}
