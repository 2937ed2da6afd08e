package setup

import (
	"testing"

	"github.com/flotilla-project/flotilla/core/testing/heap"

	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget"
)

// BenchmarkHeapOfPods measures what the cache takes for each pod, with its indexes: pods of a namespace with a budget,
// and pods of others.
func BenchmarkHeapOfPods(b *testing.B) {
	heap.Cache{Transform: podunavailablebudget.Pods("").Transform, Indexes: cover.AddIndexes}.Benchmark(b)
}
