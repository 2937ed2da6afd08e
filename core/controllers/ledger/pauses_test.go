package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// However often somebody asks, the server hears of it at most ten times in ten seconds and twice a minute in the long run.
func TestPausesGrow(t *testing.T) {
	var p pauses
	start := time.Unix(1000, 0)
	var tries []time.Duration
	for at := time.Duration(0); at < 10*time.Minute; at += 10 * time.Millisecond {
		if p.err(start.Add(at)) == nil {
			tries = append(tries, at)
			p.begin(errors.New("refused"), start.Add(at))
		}
	}
	within := func(from, until time.Duration) (n int) {
		for _, at := range tries {
			if at >= from && at < until {
				n++
			}
		}
		return n
	}
	assert.Equal(t, 4, within(0, 10*time.Second))
	for minute := 1; minute < 10; minute++ {
		assert.Equal(t, 2, within(time.Duration(minute)*time.Minute, time.Duration(minute+1)*time.Minute), minute)
	}
	require.ErrorContains(t, p.err(p.until.Add(-1200*time.Millisecond)), "refused (the server is asked again in 1.2s)")
	p.end()
	require.NoError(t, p.err(start))
	p.begin(errors.New("again"), start)
	require.NoError(t, p.err(start.Add(firstPause)))
	require.Error(t, p.err(start.Add(firstPause-1)))
}
