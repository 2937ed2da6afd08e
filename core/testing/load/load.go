package load

import (
	"fmt"
	"math/rand/v2"
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

// Way is one of several ways in which the same requests are made.
type Way struct {
	Name string
	// Request makes the i-th request.
	Request func(i int) error
	Times
}

// InTurn makes requests in each of the ways for so many seconds, so many a second. The ways have a second each, one after the
// other, in an order that chance picks anew: what else the machine does, and what another way leaves to do, meets all of them
// alike.
func InTurn(t testing.TB, perSecond, seconds int, ways []Way) {
	t.Helper()
	for second := range seconds {
		for _, k := range rand.Perm(len(ways)) { //nolint:gosec // an order needs no secrecy
			way := &ways[k]
			took := Steady(t, perSecond, perSecond, func(i int) error { return way.Request(second*perSecond + i) })
			way.Times = append(way.Times, took...)
		}
	}
}

// Compare reports the median and the 99th percentile of each way, in milliseconds, and, of all but the first, as a multiple of
// the first.
func Compare(b *testing.B, ways []Way) {
	b.Helper()
	for _, way := range ways {
		for _, percent := range []int{50, 99} {
			took := way.Within(percent)
			b.ReportMetric(float64(took.Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", way.Name, percent))
			if first := ways[0]; way.Name != first.Name {
				b.ReportMetric(float64(took)/float64(first.Within(percent)), fmt.Sprintf("%s-p%d/%s", way.Name, percent, first.Name))
			}
		}
	}
}

// Report reports the median and the 99th percentile, in milliseconds.
func (t Times) Report(b *testing.B) {
	b.Helper()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(t.Within(50)), "p50-ms")
	b.ReportMetric(ms(t.Within(99)), "p99-ms")
}
