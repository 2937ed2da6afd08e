package setup

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/heap"

	"github.com/flotilla-project/flotilla/spread/internal/workloadspread"
)

// BenchmarkHeapOfPods measures what the cache takes for each pod, with its indexes: pods of a namespace with a WorkloadSpread,
// and pods of others.
func BenchmarkHeapOfPods(b *testing.B) {
	heap.Cache{Transform: workloadspread.Pods("").Transform, Indexes: workloadspread.AddIndexes}.Benchmark(b)
}
