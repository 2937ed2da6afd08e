package plan

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// sizes are the numbers of pods that Compute is measured with.
func sizes() []int { return []int{100, 1000, 10000} }

// computed is a case that Compute is measured with.
type computed struct {
	name  string
	build func(n int) *world
	count action.Verb
	want  func(n int) int
}

func cases(t testing.TB) []computed {
	t.Helper()
	inPlace := policy(v1beta1.InPlaceIfPossible)
	return []computed{
		{"steady", func(n int) *world { return given(t, int32(n), inPlace).updated(n) }, action.UpdateInPlace, func(int) int { return 0 }},
		{"scale up from 0", func(n int) *world { return given(t, int32(n), inPlace) }, action.Create, func(n int) int { return min(n, action.MaxCreates) }},
		{"update in place", func(n int) *world { return given(t, int32(n), inPlace, maxUnavailable("10%")).old(n) }, action.UpdateInPlace, func(n int) int { return n / 10 }},
		{"recreate", func(n int) *world { return given(t, int32(n), maxUnavailable("10%")).old(n) }, action.Delete, func(n int) int { return n / 10 }},
		{"scale in to half", func(n int) *world { return given(t, int32(n/2), inPlace).updated(n) }, action.Delete, func(n int) int { return n / 2 }},
	}
}

func BenchmarkCompute(b *testing.B) {
	for _, c := range cases(b) {
		for _, n := range sizes() {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				s := c.build(n).snapshot()
				todo := Compute(s)
				require.Equal(b, c.want(n), todo.Count(c.count))
				b.ReportAllocs()
				for b.Loop() {
					Compute(s)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/pod")
			})
		}
	}
}

func BenchmarkStatus(b *testing.B) {
	for _, n := range sizes() {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := given(b, int32(n)).updated(n).snapshot().Observed()
			todo := Compute(s)
			b.ReportAllocs()
			for b.Loop() {
				Status(s, todo, action.Failures{})
			}
		})
	}
}

// A set that is as it should be costs a fixed number of allocations, however many pods it has. The pods have a deletion
// cost, without which deriving the state of one allocates.
func TestSteadyStateAllocatesNothingPerPod(t *testing.T) {
	allocations := func(n int) float64 {
		s := given(t, int32(n), policy(v1beta1.InPlaceIfPossible)).updated(n, gen.DeletionCost("0")).snapshot()
		return testing.AllocsPerRun(5, func() { Compute(s) })
	}
	few, many := allocations(100), allocations(2000)
	require.Less(t, many-few, 100.0, "%v allocations for 100 pods, %v for 2000", few, many)
}
