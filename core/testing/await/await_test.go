package await_test

import (
	"testing"

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

func TestReceiveReturnsTheValue(t *testing.T) {
	from := make(chan int, 1)
	from <- 7
	assert.Equal(t, 7, await.Receive(t, from))
	close(from)
	assert.Zero(t, await.Receive(t, from))
}
