package setup

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/heap"

	"github.com/flotilla-project/flotilla/spread/internal/workloadspread"
)

// BenchmarkHeapOfPods measures what the cache takes for each pod, with its indexes: pods of a namespace with a WorkloadSpread,
// and pods of others.
func BenchmarkHeapOfPods(b *testing.B) {
	pods := heap.Cache{Transform: workloadspread.Pods("").Transform, Indexes: workloadspread.AddIndexes}
	for name, namespace := range map[string]string{"kept": heap.Kept, "others": "elsewhere"} {
		b.Run(name, func(b *testing.B) {
			var taken uint64
			for b.Loop() {
				taken = pods.Of(b, 20_000, namespace)
			}
			b.ReportMetric(float64(taken), "B/pod")
		})
	}
}
