package load

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A request that nobody answers for a while delays none of those after it.
func TestRequestsDoNotWaitForEachOther(t *testing.T) {
	const n, perSecond = 20, 200
	last := make(chan struct{})
	took := Steady(t, perSecond, n, func(i int) error {
		switch i {
		case 0:
			<-last
		case n - 1:
			close(last)
		}
		return nil
	})
	assert.Len(t, took, n)
	assert.GreaterOrEqual(t, took[0], (n-1)*time.Second/perSecond)
}

func TestPercentiles(t *testing.T) {
	var took Times
	for i := 100; i > 0; i-- {
		took = append(took, time.Duration(i))
	}
	assert.Equal(t, time.Duration(51), took.Within(50))
	assert.Equal(t, time.Duration(100), took.Within(99))
	assert.Equal(t, time.Duration(100), took.Within(100))
	assert.Zero(t, Times{}.Within(99))
}

func TestWaysAreComparedWithTheFirst(t *testing.T) {
	measured := testing.Benchmark(func(b *testing.B) { //nolint:thelper // it is the benchmark
		for b.Loop() { // what is compared has been measured
		}
		Compare(b, []Way{{Name: "bare", Times: Times{2 * time.Millisecond}}, {Name: "webhook", Times: Times{3 * time.Millisecond}}})
	})
	assert.Equal(t, map[string]float64{
		"bare-p50-ms": 2, "bare-p99-ms": 2, "webhook-p50-ms": 3, "webhook-p99-ms": 3, "webhook-p50/bare": 1.5, "webhook-p99/bare": 1.5,
	}, measured.Extra)
}

func TestWaysTakeTurns(t *testing.T) {
	var begun []string
	note := func(way string) func(int) error {
		return func(i int) error {
			begun = append(begun, fmt.Sprint(way, i))
			return nil
		}
	}
	ways := []Way{{Name: "a", Request: note("a")}, {Name: "b", Request: note("b")}}
	InTurn(t, 1, 2, ways)
	assert.ElementsMatch(t, []string{"a0", "b0"}, begun[:2])
	assert.ElementsMatch(t, []string{"a1", "b1"}, begun[2:])
	assert.Len(t, ways[1].Times, 2)
}
