//go:build !race

package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// allocations returns how many allocations Compute may make with 1,000 pods, by case: the measured numbers and 1% and 10 more,
// rounded up. Maps allocate a few more or less from run to run, and the race detector so many that it is not measured.
func allocations() map[string]float64 {
	return map[string]float64{
		"steady":           50,
		"scale up from 0":  5200,
		"update in place":  29100,
		"recreate":         1010,
		"scale in to half": 1100,
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
