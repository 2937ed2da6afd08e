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

// documented returns the metrics that the tables of docs/reference/metrics.md name.
func documented(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "metrics.md"))
	require.NoError(t, err)
	var names []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` ").FindAllStringSubmatch(string(page), -1) {
		names = append(names, row[1])
	}
	return names
}

// ours reports whether the metric is our own and not one of a library.
func ours(name string) bool {
	return strings.HasPrefix(name, "flotilla_") || strings.HasPrefix(name, "kruise_")
}

// The rows of our own metrics are generated from the code: UPDATE_GOLDEN=1 writes them anew. Values of labels are written
// by hand, and so is which table has the row.
func TestTheRowsOfMetricsAreThoseOfTheCode(t *testing.T) {
	registered := metricsOfTheCode(t)
	names := documented(t)
	for metric := range registered {
		assert.Contains(t, names, metric, "docs/reference/metrics.md says nothing of it")
	}
	for _, metric := range names {
		assert.True(t, registered[metric] != nil || !ours(metric), "docs/reference/metrics.md tells of %s, which is not registered", metric)
	}
	file := filepath.Join("..", "..", "docs", "reference", "metrics.md")
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*?) ?\\| .* \\|$")
	want := row.ReplaceAllStringFunc(string(page), func(present string) string {
		parts := row.FindStringSubmatch(present)
		if metric := registered[parts[1]]; metric != nil {
			return metric.row(parts[2])
		}
		return present
	})
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(page))
}

// askedFor returns the metrics in a Prometheus expression. The series of a histogram count as one metric.
func askedFor(expression string) []string {
	words := regexp.MustCompile(`\b(?:[a-z]\w*_\w+_\w+|workqueue_depth)\b`).FindAllString(expression, -1)
	var metrics []string
	for _, word := range words {
		if !strings.HasSuffix(word, "_over_time") {
			metrics = append(metrics, strings.TrimSuffix(word, "_bucket"))
		}
	}
	return metrics
}

func TestAlertsAskForMetricsOfThePage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "alerts.yaml"))
	require.NoError(t, err)
	var rules struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	require.NoError(t, yaml.UnmarshalStrict(text, &rules))
	runbooks, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "runbooks.md"))
	require.NoError(t, err)
	names := documented(t)
	for _, group := range rules.Groups {
		require.NotEmpty(t, group.Rules)
		for _, rule := range group.Rules {
			asked := askedFor(rule.Expr)
			assert.NotEmpty(t, asked, rule.Alert)
			assert.Subset(t, names, asked, rule.Alert)
			assert.NotEmpty(t, rule.Labels["severity"], rule.Alert)
			assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			assert.NotEmpty(t, rule.Annotations["description"], rule.Alert)
			assert.Contains(t, string(runbooks), "\n## "+rule.Alert+"\n", "what is to be done?")
			assert.Equal(t, "https://github.com/flotilla-project/flotilla/blob/main/docs/operate/runbooks.md#"+strings.ToLower(rule.Alert), rule.Annotations["runbook_url"])
			assert.Equal(t, strings.Count(rule.Expr, "("), strings.Count(rule.Expr, ")"), rule.Alert)
		}
	}
}
