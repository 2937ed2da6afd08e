package manager

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestGarbageIsBoundedByWhatIsInUse(t *testing.T) {
	for used, want := range map[uint64]int{
		0: 100, 10 << 20: 100, 20 << 20: 100, 25 << 20: 80, 40 << 20: 50, 50 << 20: 40, 1 << 30: 40,
	} {
		assert.Equal(t, want, garbagePercent(used), "%d bytes", used)
	}
}

func TestGarbageIsLookedAtAgain(t *testing.T) {
	fake, percents := clocktesting.NewFakeClock(time.Unix(0, 0)), make(chan int, 1)
	g := &garbage{clock: fake, set: func(percent int) int { percents <- percent; return 0 }}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- g.Start(ctx) }()
	for range 3 {
		percent := <-percents
		assert.GreaterOrEqual(t, percent, leastGarbage)
		assert.LessOrEqual(t, percent, mostGarbage)
		fake.Step(garbagePeriod)
	}
	stop()
	for len(percents) > 0 {
		<-percents
	}
	require.NoError(t, <-ended)
}
