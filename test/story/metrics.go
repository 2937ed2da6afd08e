package story

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/install"
)

// Samples are the values of metrics by name and labels, such as `workqueue_depth{name="cloneset"}`.
type Samples map[string]float64

// serverMetrics are what the API server serves now.
func (w World) serverMetrics(ctx context.Context) (Samples, error) {
	page, err := w.page(ctx, "/metrics")
	return parseSamples(page), err
}

// operatorMetrics are what the feature's manager serves now.
func (w World) operatorMetrics(ctx context.Context, feature string) (Samples, error) {
	page, err := w.metricsPage(ctx, feature)
	return parseSamples(page), err
}

// MetricsPage is the page with the metrics of the feature's manager, of which one pod must run.
func (w World) MetricsPage(t *testing.T, feature string) string {
	t.Helper()
	page, err := w.metricsPage(t.Context(), feature)
	require.NoError(t, err)
	return page
}

func (w World) metricsPage(ctx context.Context, feature string) (string, error) {
	list := &corev1.PodList{}
	err := w.Client.List(ctx, list, client.InNamespace(install.Namespace), client.MatchingLabels{"app.kubernetes.io/name": feature + "-manager"})
	if err != nil {
		return "", err
	}
	pods := Active(list.Items)
	if len(pods) != 1 {
		return "", fmt.Errorf("%d pods of %s are there", len(pods), feature)
	}
	return w.page(ctx, "/api/v1/namespaces/"+install.Namespace+"/pods/"+pods[0].Name+":8080/proxy/metrics")
}

// page is what the API server answers at the path.
func (w World) page(ctx context.Context, path string) (string, error) {
	out, err := w.kubectl(ctx, "", "get", "--raw", path)
	if err != nil {
		return "", fmt.Errorf("get %s: %w: %s", path, err, out)
	}
	return out, nil
}

// Of are the samples of the metric, whatever their labels.
func (s Samples) Of(metric string) Samples {
	found := maps.Clone(s)
	maps.DeleteFunc(found, func(series string, _ float64) bool {
		name, _, _ := strings.Cut(series, "{")
		return name != metric
	})
	return found
}

// Sum adds up all samples of the metric.
func (s Samples) Sum(metric string) float64 {
	total := 0.0
	for _, value := range s.Of(metric) {
		total += value
	}
	return total
}

// parseSamples reads Prometheus' text format without time stamps, as Kubernetes serves it.
func parseSamples(page string) Samples {
	samples := Samples{}
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			samples[line[:at]] = value
		}
	}
	return samples
}
