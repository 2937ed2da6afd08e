package docs

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The date of a decision, its ruling and its reasons are there for whoever asks years later.
func TestDecisionsSayWhenAndWhy(t *testing.T) {
	dated := regexp.MustCompile(`^# .+\n\n\*\*Date\.\*\* (\d+ \w+ \d+)\.`)
	for _, name := range decisions(t) {
		content := text(t, name)
		date := dated.FindStringSubmatch(content)
		if assert.NotNil(t, date, "%s has no date below its title", name) {
			_, err := time.Parse("2 January 2006", date[1])
			assert.NoError(t, err, name)
		}
		for _, part := range []string{"Ruling", "Reason", "Alternatives"} {
			assert.Contains(t, content, "\n**"+part+".**", name)
		}
	}
}

// The list has the title of each page, in their order.
func TestTheListOfDecisionsIsComplete(t *testing.T) {
	var want strings.Builder
	for _, name := range decisions(t) {
		title, _, _ := strings.Cut(strings.TrimPrefix(text(t, name), "# "), "\n")
		number, _, _ := strings.Cut(path.Base(name), "-")
		fmt.Fprintf(&want, "%s. [%s](%s)\n", strings.TrimPrefix(number, "0"), title, path.Base(name))
	}
	_, items, _ := strings.Cut(text(t, "docs/decisions/README.md"), "\n1. ")
	assert.Equal(t, strings.TrimSpace(want.String()), "1. "+strings.TrimSpace(items))
}

// decisions returns the names of their pages, in order.
func decisions(t *testing.T) []string {
	t.Helper()
	var found []string
	for name := range pages(t) {
		if strings.HasPrefix(name, "docs/decisions/") && name != "docs/decisions/README.md" {
			found = append(found, name)
		}
	}
	require.NotEmpty(t, found)
	return slices.Sorted(slices.Values(found))
}
