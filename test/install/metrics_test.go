package install

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// documented returns the metrics that the tables of docs/metrics.md name.
func documented(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
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

func TestThePageOfMetricsIsComplete(t *testing.T) {
	registered := map[string]bool{}
	name := regexp.MustCompile(`\bName:\s+"((?:flotilla|kruise)_\w+)"`)
	err := filepath.WalkDir(filepath.Join("..", ".."), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, found := range name.FindAllStringSubmatch(string(text), -1) {
			registered[found[1]] = true
		}
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, registered)
	names := documented(t)
	for metric := range registered {
		assert.Contains(t, names, metric, "docs/metrics.md says nothing of it")
	}
	for _, metric := range names {
		assert.True(t, registered[metric] || !ours(metric), "docs/metrics.md tells of %s, which is not registered", metric)
	}
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
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "alerts.yaml"))
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
			assert.Equal(t, strings.Count(rule.Expr, "("), strings.Count(rule.Expr, ")"), rule.Alert)
		}
	}
}
