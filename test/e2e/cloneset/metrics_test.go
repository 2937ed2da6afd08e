package cloneset

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// This operator serves the metrics that the page of metrics lists for every operator and for the libraries.
func TestMetricsOfThePageAreServed(t *testing.T) {
	t.Parallel()
	set := newSet(world.Namespace(t), 1)
	givenSet(t, set)
	served := world.MetricsPage(t, "cloneset")
	page, err := os.ReadFile("../../../docs/reference/metrics.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` ").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, rows)
	for _, row := range rows {
		// The metrics of the agent, of budgets and of spreads are left out, and those of certificates, which were not written since this
		// pod started, of pods in trouble, which there need not be, and of permissions that are lacking.
		name := row[1]
		of := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if !of("kruise_agent_") && !of("flotilla_budget_") && !of("flotilla_spread_") && name != "flotilla_workload_troubled_pods" && name != "flotilla_webhook_certificate_writes_total" &&
			name != "flotilla_forbidden_requests_total" {
			assert.Contains(t, served, "\n"+name, name)
		}
	}
	assert.NotContains(t, served, "\n"+`flotilla_pod_start_seconds_count{controller="cloneset"} 0`, "the pod is ready, and its start was not measured")
}

func TestMetricsAreForReaders(t *testing.T) {
	world.MetricsAreForReaders(t, "cloneset-manager", 8080, 8090)
}
