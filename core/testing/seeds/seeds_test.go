package seeds

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSeedsOfATextAreItsOwn(t *testing.T) {
	t.Setenv(Variable, "7d1f0f2b7c5f3a0e9b1c8d6e5f4a3b2c1d0e9f8a")
	one := firstSeed()
	assert.Equal(t, one, firstSeed())
	t.Setenv(Variable, "8d1f0f2b7c5f3a0e9b1c8d6e5f4a3b2c1d0e9f8a")
	assert.NotEqual(t, one, firstSeed())
	t.Setenv(Variable, "")
	assert.Equal(t, uint64(1), firstSeed())
}

func TestWorldsFollowEachOther(t *testing.T) {
	t.Setenv(Variable, "")
	var played []uint64
	n := Each(t, 3, func(t *testing.T, seed uint64) {
		t.Helper()
		played = append(played, seed)
	})
	assert.Equal(t, []uint64{1, 2, 3}, played)
	assert.Equal(t, 3, n)
}
