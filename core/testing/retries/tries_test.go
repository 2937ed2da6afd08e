package retries

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTriesAreFewAtFirstAndInTheLongRun(t *testing.T) {
	refused := func(pauses ...time.Duration) (err error) {
		var tries Tries
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, pause := range pauses {
			require.NoError(t, err)
			err = tries.Refused("create", now)
			now = now.Add(pause)
		}
		return err
	}
	every := func(pause time.Duration, n int) []time.Duration {
		all := make([]time.Duration, n)
		for i := range all {
			all[i] = pause
		}
		return all
	}
	require.NoError(t, refused(append([]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}, every(30*time.Second, 20)...)...))
	require.ErrorContains(t, refused(every(100*time.Millisecond, 9)...), "more than 2 tries of create in 58s")
	require.NoError(t, refused(append(every(30*time.Second, 6), every(29*time.Second, 3)...)...), "a write of another name may come a second before its turn")
	assert.ErrorContains(t, refused(append(every(30*time.Second, 6), every(28*time.Second, 3)...)...), "more than 2 tries")
}

func TestAWriteThatIsTakenBeginsAgain(t *testing.T) {
	var tries Tries
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 100 {
		require.NoError(t, tries.Refused("create", now))
		require.NoError(t, tries.Refused("delete", now))
		tries.Taken("create")
		tries.Taken("delete")
	}
}
