package action_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

func TestSecondsNeverOverflow(t *testing.T) {
	assert.Equal(t, 90*time.Second, action.Seconds(int32(90)))
	assert.Equal(t, -time.Second, action.Seconds(int64(-1)))
	for _, n := range []int64{10_000_000_000, math.MaxInt64} {
		assert.Greater(t, action.Seconds(n), 100*365*24*time.Hour, n)
		assert.Less(t, action.Seconds(-n), -100*365*24*time.Hour, n)
	}
	assert.Positive(t, action.Seconds(int64(math.MaxInt64))+100*365*24*time.Hour, "it can be added to")
}
