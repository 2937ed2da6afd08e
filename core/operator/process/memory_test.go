package process

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMemoryLimitFollowsTheControlGroup(t *testing.T) {
	const before = 1 << 40
	none := func() (uint64, error) { return 0, memlimit.ErrNoLimit }
	for name, c := range map[string]struct {
		group  memlimit.Provider
		chosen string
		want   int64
	}{
		"a limit":                     {memlimit.Limit(1_000_000_000), "", 900_000_000},
		"none":                        {none, "", math.MaxInt64},
		"a limit, and the user's own": {memlimit.Limit(1_000_000_000), "2GiB", before},
	} {
		t.Run(name, func(t *testing.T) {
			choose(t, c.chosen)
			own := debug.SetMemoryLimit(before)
			limitMemory(logr.Discard(), c.group)
			assert.Equal(t, c.want, debug.SetMemoryLimit(own))
		})
	}
}

// choose sets GOMEMLIMIT, or unsets it where the limit is empty.
func choose(t *testing.T, limit string) {
	t.Helper()
	t.Setenv("GOMEMLIMIT", limit) // restores it when the test ends
	if limit == "" {
		require.NoError(t, os.Unsetenv("GOMEMLIMIT"))
	}
}

func TestAnUnknownMemoryLimitIsTold(t *testing.T) {
	choose(t, "")
	told := 0
	log := funcr.New(func(string, string) { told++ }, funcr.Options{})
	limitMemory(log, func() (uint64, error) { return 0, memlimit.ErrNoLimit })
	assert.Zero(t, told)
	limitMemory(log, func() (uint64, error) { return 0, errors.New("no such file") })
	assert.Equal(t, 1, told)
}
