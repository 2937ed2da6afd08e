package story

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSamplesAreReadFromAPage(t *testing.T) {
	samples := parseSamples(`# HELP calls_total How many. Not 3
# TYPE calls_total counter
calls_total{name="a b",code="200"} 2
calls_total{name="c",code="500"} 1e+01

calls_total_more 7
up 1
`)
	assert.Equal(t, Samples{`calls_total{name="a b",code="200"}`: 2, `calls_total{name="c",code="500"}`: 10}, samples.Of("calls_total"))
	assert.InDelta(t, 12, samples.Sum("calls_total"), 0)
	assert.Zero(t, samples.Sum("calls"))
	assert.InDelta(t, 1, samples.Sum("up"), 0)
}
