package manager

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/utils/clock"
)

const (
	// leastGarbage and mostGarbage bound how much garbage may be for what is in use, in percent. Most of what
	// an operator with many objects holds are caches that stay: Go's own 100 would take twice their size.
	leastGarbage, mostGarbage = 40, 100
	// garbageSize is how many bytes of garbage are fine in any case: to collect them often, where little is in
	// use, would take time and save nothing.
	garbageSize = 20 << 20
	// garbagePeriod is the time between two looks at what is in use.
	garbagePeriod = 10 * time.Second

	liveHeap = "/gc/heap/live:bytes"
)

// garbage lets the process collect its garbage the sooner, the more of its memory is in use.
type garbage struct {
	clock clock.WithTicker
	set   func(percent int) int
}

func newGarbage() *garbage {
	g := &garbage{clock: clock.RealClock{}, set: debug.SetGCPercent}
	g.set(leastGarbage) // while caches are filled
	return g
}

// NeedLeaderElection makes a manager start it when the caches are filled.
func (*garbage) NeedLeaderElection() bool { return false }

// Start looks again and again until ctx ends.
func (g *garbage) Start(ctx context.Context) error {
	ticker := g.clock.NewTicker(garbagePeriod)
	defer ticker.Stop()
	for {
		used := []metrics.Sample{{Name: liveHeap}}
		metrics.Read(used)
		g.set(garbagePercent(used[0].Value.Uint64()))
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// garbagePercent returns how much garbage may be for so many bytes in use.
func garbagePercent(used uint64) int {
	return int(min(max(100*garbageSize/max(used, 1), leastGarbage), mostGarbage))
}
