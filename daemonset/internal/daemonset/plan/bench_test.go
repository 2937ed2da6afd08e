package plan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// manyNodes is the size of the largest clusters.
const manyNodes = 5000

// all are the names of n nodes.
func all(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i+1)
	}
	return strings.Join(names, " ")
}

// computed is a case that Compute is measured with.
type computed struct {
	name  string
	build func(n int) *world
	count action.Verb
	want  func(n int) int
}

func cases(t testing.TB) []computed {
	t.Helper()
	return []computed{
		{"steady", func(n int) *world { return given(t, n).updated(all(n)) }, action.Create, func(int) int { return 0 }},
		{"one node has come", func(n int) *world { return given(t, n).updated(all(n - 1)) }, action.Create, func(int) int { return 1 }},
		{"first pods", func(n int) *world { return given(t, n) }, action.Create, func(n int) int { return min(n, action.MaxCreates) }},
		{"recreate", func(n int) *world { return given(t, n, maxUnavailable("10%")).old(all(n)) }, action.Delete, func(n int) int { return min(n/10, defaultBurst) }},
		{"update in place", func(n int) *world { return given(t, n, inPlace, maxUnavailable("10%")).old(all(n)) }, action.UpdateInPlace, func(n int) int { return min(n/10, defaultBurst) }},
		{"surge", func(n int) *world { return given(t, n, maxSurge("10%")).old(all(n)) }, action.Create, func(n int) int { return min(n/10, action.MaxCreates) }},
		{"in the middle of a rollout", func(n int) *world {
			w := given(t, n).updated(all(n / 2))
			for i := n / 2; i < n; i++ {
				w.old(fmt.Sprintf("n%d", i+1))
			}
			return w
		}, action.Delete, func(int) int { return 1 }},
	}
}

func BenchmarkCompute(b *testing.B) {
	for _, c := range cases(b) {
		for _, n := range []int{100, 1000, manyNodes} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				s := c.build(n).snapshot()
				todo := Compute(s)
				require.Equal(b, c.want(n), todo.Count(c.count))
				b.ReportAllocs()
				for b.Loop() {
					Compute(s)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/node")
			})
		}
	}
}

func BenchmarkStatus(b *testing.B) {
	for _, n := range []int{100, 1000, manyNodes} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := given(b, n).updated(all(n)).snapshot().Observed()
			todo := Compute(s)
			b.ReportAllocs()
			for b.Loop() {
				Status(s, todo, action.Failures{})
			}
		})
	}
}

// A set that is as it should be costs a fixed number of allocations, however many nodes there are. The pods have a
// deletion cost, without which deriving the state of one allocates.
func TestSteadyStateAllocatesNothingPerNode(t *testing.T) {
	allocations := func(n int) float64 {
		s := given(t, n, inPlace).updated(all(n), gen.DeletionCost("0")).snapshot()
		return testing.AllocsPerRun(5, func() { Compute(s) })
	}
	few, many := allocations(100), allocations(2000)
	require.Less(t, many-few, 100.0, "%v allocations for 100 nodes, %v for 2000", few, many)
}
