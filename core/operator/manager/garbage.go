package manager

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"k8s.io/utils/clock"
)

const (
	// leastGarbage and mostGarbage bound the value of GOGC, in percent. Most memory of an operator with many objects is
	// caches that stay: with Go's default of 100 the process would take twice their size.
	leastGarbage, mostGarbage = 40, 100
	// garbageSize is how many bytes of garbage are acceptable in any case: where little memory is in use, collecting
	// more often costs time and saves little.
	garbageSize = 20 << 20
	// garbagePeriod is the time between two adjustments.
	garbagePeriod = 10 * time.Second

	liveHeap = "/gc/heap/live:bytes"
)

// garbage tunes the garbage collector: the more memory is in use, the smaller the share of garbage.
type garbage struct {
	clock clock.WithTicker
	set   func(percent int) int
}

func newGarbage() *garbage {
	g := &garbage{clock: clock.RealClock{}, set: debug.SetGCPercent}
	g.set(leastGarbage) // while caches sync
	return g
}

// NeedLeaderElection makes a manager start it when the caches have synced.
func (*garbage) NeedLeaderElection() bool { return false }

// Start adjusts GOGC until ctx ends.
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

// garbagePercent returns the value of GOGC for so many bytes in use.
func garbagePercent(used uint64) int {
	return int(min(max(100*garbageSize/max(used, 1), leastGarbage), mostGarbage))
}
