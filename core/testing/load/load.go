package load

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Times are how long requests took.
type Times []time.Duration

// Steady makes n requests, so many a second, and returns how long each took from the moment at which it was to begin. The
// test fails if one of them does.
func Steady(t testing.TB, perSecond, n int, request func(i int) error) Times {
	t.Helper()
	took, errs := make(Times, n), make([]error, n)
	var all sync.WaitGroup
	begun := time.Now()
	for i := range n {
		due := begun.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		if early := time.Until(due); early > 0 {
			<-time.After(early)
		}
		all.Go(func() {
			errs[i] = request(i)
			took[i] = time.Since(due)
		})
	}
	all.Wait()
	for i, err := range errs {
		require.NoError(t, err, fmt.Sprint("request ", i))
	}
	return took
}

// Within returns the time within which so many percent of the requests were answered.
func (t Times) Within(percent int) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Clone(t)
	slices.Sort(sorted)
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

// Report reports the median and the 99th percentile, in milliseconds.
func (t Times) Report(b *testing.B) {
	b.Helper()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(t.Within(50)), "p50-ms")
	b.ReportMetric(ms(t.Within(99)), "p99-ms")
}
