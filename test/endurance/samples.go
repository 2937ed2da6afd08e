package endurance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Sample is the state of an operator at one moment.
type Sample struct {
	// At is the time since the beginning of the work.
	At time.Duration
	// MemoryMiB is the resident memory.
	MemoryMiB float64
	// HeapMiB is the memory of objects, with those that are garbage.
	HeapMiB float64
	// Goroutines is their number, Files that of open files, and Series that of the series of all metrics.
	Goroutines, Files, Series float64
	// Queued is how many requests wait in all queues.
	Queued float64
	// CPU is the time that the process has taken since its start, in seconds, and Passes is how many passes there were.
	CPU, Passes float64
}

const mebi = 1 << 20

// sample reads the metrics page of an operator.
func sample(ctx context.Context, url string) (Sample, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Sample{}, fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Sample{}, fmt.Errorf("ask %s: %w", url, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return Sample{}, fmt.Errorf("ask %s: status %s", url, response.Status)
	}
	return parse(response.Body)
}

func parse(page io.Reader) (Sample, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return Sample{}, fmt.Errorf("parse metrics: %w", err)
	}
	series := 0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			series += seriesOf(m)
		}
	}
	return Sample{
		MemoryMiB:  sum(families, "process_resident_memory_bytes") / mebi,
		HeapMiB:    sum(families, "go_memstats_heap_alloc_bytes") / mebi,
		Goroutines: sum(families, "go_goroutines"),
		Files:      sum(families, "process_open_fds"),
		Series:     float64(series),
		Queued:     sum(families, "workqueue_depth"),
		CPU:        sum(families, "process_cpu_seconds_total"),
		Passes:     sum(families, "controller_runtime_reconcile_total"),
	}, nil
}

// seriesOf returns how many series Prometheus keeps of a metric.
func seriesOf(m *dto.Metric) int {
	const sumAndCount = 2
	switch {
	case m.Histogram != nil:
		return len(m.Histogram.GetBucket()) + sumAndCount
	case m.Summary != nil:
		return len(m.Summary.GetQuantile()) + sumAndCount
	}
	return 1
}

func sum(families map[string]*dto.MetricFamily, name string) float64 {
	total := 0.0
	for _, m := range families[name].GetMetric() {
		total += m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
	}
	return total
}
