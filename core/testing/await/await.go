package await

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// Limit is how long Until waits. A test that reaches it hangs: all that is waited for comes within seconds on a quiet
	// machine, or within the 30 seconds after which a refused write is tried again.
	Limit = 4 * time.Minute

	// interval is the time before the second try. The time between two tries grows with each, by growth until it has
	// grown by longest: most of what is waited for comes at once or after seconds, and each try costs the server a request.
	interval = 20 * time.Millisecond
	growth   = 10 * time.Millisecond
	longest  = 180 * time.Millisecond
)

// Until waits until the assertions of check hold. After Limit it fails the test with the assertions that failed last and
// the message, which is formatted as by require functions.
func Until(t testing.TB, check func(c *assert.CollectT), message ...any) {
	t.Helper()
	var pause time.Duration
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		time.Sleep(pause)
		pause = min(pause+growth, longest)
		check(c)
	}, Limit, interval, message...)
}

// Receive waits until the channel has a value or is closed, and returns the value. After Limit it fails the test with the
// message.
func Receive[T any](t testing.TB, from <-chan T, message ...any) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(Limit):
		require.Fail(t, "nothing was received", message...)
		panic("not reached")
	}
}
