package story

import (
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

// ServerMetrics are what the API server serves now.
func (w World) ServerMetrics(t *testing.T) Samples {
	t.Helper()
	out, err := w.Kubectl(t, "", "get", "--raw", "/metrics")
	require.NoError(t, err, out)
	return parseSamples(out)
}

// OperatorMetrics are what the only pod of the feature's manager serves now.
func (w World) OperatorMetrics(t *testing.T, feature string) Samples {
	t.Helper()
	pods := w.operatorPods(t, feature)
	require.Len(t, pods, 1, "pods of %s", feature)
	out, err := w.Kubectl(t, "", "get", "--raw", "/api/v1/namespaces/"+install.Namespace+"/pods/"+pods[0].Name+":8080/proxy/metrics")
	require.NoError(t, err, out)
	return parseSamples(out)
}

// operatorPods are the pods of the feature's manager that nobody has deleted.
func (w World) operatorPods(t *testing.T, feature string) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	require.NoError(t, w.Client.List(t.Context(), list, client.InNamespace(install.Namespace),
		client.MatchingLabels{"app.kubernetes.io/name": feature + "-manager"}))
	return Active(list.Items)
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
