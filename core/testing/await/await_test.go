package await_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

func TestUntilTriesAgain(t *testing.T) {
	tries := 0
	await.Until(t, func(c *assert.CollectT) {
		tries++
		assert.Equal(c, 3, tries)
	})
	assert.Equal(t, 3, tries)
}

// Tries come less often with time, in a bubble whose clock jumps.
func TestTriesThatFailBecomeRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, early, all := time.Now(), 0, 0
		await.Until(t, func(c *assert.CollectT) {
			all++
			if time.Since(began) < time.Second {
				early++
			}
			assert.Greater(c, time.Since(began), time.Minute)
		})
		assert.GreaterOrEqual(t, early, 10)
		assert.Less(t, all, 400, "in a minute")
		assert.Less(t, time.Since(began), time.Minute+time.Second)
	})
}

func TestReceiveReturnsTheValue(t *testing.T) {
	from := make(chan int, 1)
	from <- 7
	assert.Equal(t, 7, await.Receive(t, from))
	close(from)
	assert.Zero(t, await.Receive(t, from))
}
