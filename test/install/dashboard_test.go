package install

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// dashboard is what these tests read of docs/operate/dashboard.json.
type dashboard struct {
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []struct{ Expr, LegendFormat string }
}

func readDashboard(t *testing.T) (d dashboard, text string) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "dashboard.json"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(file, &d))
	require.NotEmpty(t, d.Panels)
	return d, string(file)
}

// labelsOf returns the labels of each metric of the page, and the labels that a scrape adds.
func labelsOf(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics.md"))
	require.NoError(t, err)
	labels := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]*)\\|").FindAllStringSubmatch(string(page), -1) {
		labels[row[1]] = []string{"operator", "instance"}
		column, _, _ := strings.Cut(row[2], ":") // values follow the colon
		for _, label := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(column, -1) {
			labels[row[1]] = append(labels[row[1]], label[1])
		}
	}
	return labels
}

// Every panel queries metrics of the page, with labels that they have.
func TestTheDashboardAsksForMetricsOfThePage(t *testing.T) {
	d, _ := readDashboard(t)
	known := labelsOf(t)
	drawn := map[string]bool{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			asked := askedFor(target.Expr)
			require.NotEmpty(t, asked, "%s: %s", p.Title, target.Expr)
			assert.Equal(t, strings.Count(target.Expr, "("), strings.Count(target.Expr, ")"), p.Title)
			for _, metric := range asked {
				drawn[metric] = true
				require.Contains(t, known, metric, p.Title)
				for _, label := range labelsIn(target.Expr, target.LegendFormat) {
					if label != "le" || !strings.Contains(target.Expr, metric+"_bucket") {
						assert.Contains(t, known[metric], label, "%s: %s has no such label", p.Title, metric)
					}
				}
				assert.Equal(t, strings.HasSuffix(metric, "_total"), strings.Contains(target.Expr, "rate("+metric+"{") || strings.Contains(target.Expr, "rate("+metric+"["), "%s: counters are drawn as rates, and nothing else", p.Title)
			}
		}
	}
	for metric := range known {
		if strings.HasPrefix(metric, "flotilla_") && !strings.HasSuffix(metric, "_writes_total") {
			assert.True(t, drawn[metric], "no panel shows %s", metric)
		}
	}
}

// labelsIn returns the labels by which an expression selects and aggregates, and those of its legend.
func labelsIn(expression, legend string) []string {
	var labels []string
	for _, list := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(expression, -1) {
		labels = append(labels, strings.Split(list[1], ", ")...)
	}
	for _, one := range regexp.MustCompile(`[{,](\w+)(?:=|!=|=~|!~)"`).FindAllStringSubmatch(expression, -1) {
		labels = append(labels, one[1])
	}
	for _, one := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(legend, -1) {
		labels = append(labels, one[1])
	}
	return labels
}

// On import, a user chooses only the data source of the dashboard.
func TestTheDashboardCanBeImportedAnywhere(t *testing.T) {
	d, text := readDashboard(t)
	variables := map[string]string{}
	for _, v := range d.Templating.List {
		variables[v.Name] = v.Type
	}
	assert.Equal(t, map[string]string{"datasource": "datasource", "operator": "query"}, variables)
	for _, used := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(text, -1) {
		name := used[1]
		assert.True(t, variables[name] != "" || strings.HasPrefix(name, "__"), "nobody sets variable %s", name)
	}
	assert.NotContains(t, text, "://", "an address of somebody's")
	ids := map[int]bool{}
	for i, p := range d.Panels {
		assert.False(t, ids[p.ID], "two panels have the number %d", p.ID)
		ids[p.ID] = true
		assert.NotEmpty(t, p.Title)
		if p.Type != "row" {
			assert.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
			assert.NotEmpty(t, p.Targets, p.Title)
			assert.NotEmpty(t, p.Description, p.Title)
		}
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for _, other := range d.Panels[:i] {
			assert.False(t, overlap(p, other), "%q covers %q", p.Title, other.Title)
		}
	}
}

func overlap(a, b panel) bool {
	return a.GridPos.X < b.GridPos.X+b.GridPos.W && b.GridPos.X < a.GridPos.X+a.GridPos.W &&
		a.GridPos.Y < b.GridPos.Y+b.GridPos.H && b.GridPos.Y < a.GridPos.Y+a.GridPos.H
}
