//go:build !race

package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// allocations returns how many allocations Compute may make with 1,000 nodes, by case: the measured numbers and 1% and 10 more,
// rounded up. Maps allocate a few more or less from run to run, and the race detector so many that it is not measured.
func allocations() map[string]float64 {
	return map[string]float64{
		"steady":                     180,
		"one node has come":          220,
		"first pods":                 5700,
		"recreate":                   2700,
		"update in place":            30300,
		"surge":                      24300,
		"in the middle of a rollout": 1300,
	}
}

func TestAllocationsStayWithinTheirBounds(t *testing.T) {
	for _, c := range cases(t) {
		s := c.build(1000).snapshot()
		todo := Compute(s)
		assert.Equal(t, c.want(1000), todo.Count(c.count), c.name)
		made := testing.AllocsPerRun(5, func() { Compute(s) })
		assert.LessOrEqual(t, made, allocations()[c.name], c.name)
	}
}
