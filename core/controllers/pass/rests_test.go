package pass

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// Of many events of a large object each pass sees all that came since the last one.
func TestAPassRestsAsLongAsItWasDear(t *testing.T) {
	for _, c := range []struct {
		name       string
		took, rest time.Duration
	}{
		{"dear", 3 * time.Millisecond, 60 * time.Millisecond},
		{"very dear", time.Second, longestRest},
		{"cheap", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, passes := givenWorld(t), 0
			handle := func() time.Duration {
				result, err := w.controller.Handle(t.Context(), request(), func(context.Context, types.NamespacedName) (Pass, error) {
					passes++
					w.clock.Step(c.took)
					return w.pass(), nil
				})
				require.NoError(t, err)
				return result.RequeueAfter
			}
			handle()
			assert.Equal(t, c.rest, handle())
			if c.rest > 0 {
				assert.Equal(t, 1, passes)
				w.clock.Step(c.rest - time.Millisecond)
				assert.Equal(t, time.Millisecond, handle())
				w.clock.Step(time.Millisecond)
				handle()
			}
			assert.Equal(t, 2, passes)
			w.controller.Forget(request().NamespacedName)
			handle()
			assert.Equal(t, 3, passes, "another object of that name")
		})
	}
}

// What has more to do than a pass has time for does not rest.
func TestAPassWhoseTimeIsUpDoesNotRest(t *testing.T) {
	w := givenWorld(t)
	w.spendAtOnce(t)
	passes := 0
	for range 2 {
		_, err := w.controller.Handle(t.Context(), request(), func(context.Context, types.NamespacedName) (Pass, error) {
			passes++
			w.clock.Step(time.Second)
			return w.twoWrites(), nil
		})
		require.NoError(t, err)
	}
	assert.Equal(t, 2, passes)
}
