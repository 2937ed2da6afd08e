package operator

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTurns(t *testing.T) {
	t.Run("two functions never run at the same time", func(t *testing.T) {
		var story []string
		follow := func(name string) *turns {
			var own *turns
			own = inTurns(func() {
				story = append(story, name+" begins")
				own.pause()
				story = append(story, name+" ends")
			})
			return own
		}
		a, b := follow("a"), follow("b")
		assert.False(t, a.next())
		assert.False(t, b.next())
		assert.True(t, b.next())
		assert.True(t, a.next())
		assert.Equal(t, []string{"a begins", "b begins", "b ends", "a ends"}, story)
	})
	t.Run("a panic reaches whoever gives the turn", func(t *testing.T) {
		assert.PanicsWithValue(t, "lost", func() { inTurns(func() { panic("lost") }).next() })
	})
	t.Run("so does the end of a goroutine", func(t *testing.T) {
		ended, returned := make(chan struct{}), false
		go func() {
			defer close(ended)
			inTurns(runtime.Goexit).next()
			returned = true
		}()
		<-ended
		assert.False(t, returned)
	})
}
