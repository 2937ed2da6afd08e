package admission

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnAddressHasItsShare(t *testing.T) {
	r := newRoom(6, 10)
	first, second, other := r.enter("a", 6), r.enter("a", 4), r.enter("b", 6)
	require.NoError(t, r.take(t.Context(), first, 4))
	_, ok := r.try(second, 3)
	assert.False(t, ok, "the share of a")
	require.NoError(t, r.take(t.Context(), other, 4))
	_, ok = r.try(second, 2)
	assert.False(t, ok, "neither of the others could end")
	require.NoError(t, r.take(t.Context(), first, 6))
	_, ok = r.try(other, 5)
	assert.False(t, ok, "nothing is left")
	impatient, leave := context.WithCancel(t.Context())
	leave()
	require.ErrorIs(t, r.take(impatient, other, 6), context.Canceled)
	r.leave(first)
	require.NoError(t, r.take(t.Context(), other, 6))
	require.NoError(t, r.take(t.Context(), second, 4))
}

// Whatever requests come, all of them end, and they never have more than there is.
func TestAllRequestsEnd(t *testing.T) {
	const share, most = 20, 30
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := newRoom(share, most)
		var all sync.WaitGroup
		for range 40 {
			size, address := 1+random.Int64N(share), fmt.Sprint(random.IntN(3))
			all.Go(func() {
				g := r.enter(address, size)
				defer r.leave(g)
				for held := int64(1); held <= size; held++ {
					if err := r.take(t.Context(), g, held); err != nil {
						t.Errorf("take byte %d: %v", held, err)
						return
					}
					r.mu.Lock()
					var taken int64
					byAddress := map[string]int64{}
					for other := range r.guests {
						taken += other.held
						byAddress[other.address] += other.held
					}
					r.mu.Unlock()
					assert.LessOrEqual(t, taken, int64(most))
					assert.LessOrEqual(t, byAddress[address], int64(share))
				}
			})
		}
		all.Wait()
		assert.Empty(t, r.guests)
	}
}
