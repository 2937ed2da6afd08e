package simulate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestALongRolloutIsDrawnInTenSeconds(t *testing.T) {
	began := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for seconds, want := range map[float64]time.Duration{4: 4 * time.Second, 100: 10 * time.Second, 3600: 10 * time.Second} {
		film, all := newFilm(seconds), time.Duration(0)
		for _, share := range []float64{0, 0.1, 0.5, 0.5, 1} {
			all += film.pause(began.Add(time.Duration(share * seconds * float64(time.Second))))
		}
		assert.InDelta(t, want.Seconds(), all.Seconds(), 0.001, "a rollout of %v s", seconds)
	}
}
