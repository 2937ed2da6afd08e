package optional

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// lookPause is the time between two looks for the needs of a controller, which may be installed or granted at any time.
const lookPause = 5 * time.Second

// Beginning is a controller with needs that may be missing.
type Beginning struct {
	// Ready reports whether all is there that the controller needs.
	Ready func(context.Context) (bool, error)
	// Without adds to the manager the parts that run until then, such as a controller that reports the missing needs; nil
	// for none. They do nothing more once over returns true.
	Without func(ctx context.Context, over func() bool) error
	// With adds the controller to the manager.
	With func(context.Context) error
	// Clock ticks until all is there; nil for the real one.
	Clock clock.WithTicker
}

// Begin adds the controller to the manager: at once if all is there, or as soon as it is. In the meantime Without runs.
// An error of Ready is returned at first; later it is logged, and Ready is asked again.
func Begin(ctx context.Context, mgr ctrl.Manager, b Beginning) error {
	ready, err := b.Ready(ctx)
	if err != nil {
		return err
	}
	if ready {
		return b.With(ctx)
	}
	begun := &atomic.Bool{}
	if b.Without != nil {
		if err := b.Without(ctx, begun.Load); err != nil {
			return err
		}
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if !b.await(ctx) {
			return nil
		}
		begun.Store(true)
		return b.With(ctx)
	}))
}

// await returns true once all is there, and false if the context ends first.
func (b *Beginning) await(ctx context.Context) bool {
	ticks := b.Clock
	if ticks == nil {
		ticks = clock.RealClock{}
	}
	for {
		ready, err := b.Ready(ctx)
		if ready {
			return true
		}
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Failed to check whether a controller can start")
		}
		timer := ticks.NewTimer(lookPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C():
		}
	}
}

// Never is the end of a part that runs permanently.
func Never() bool { return false }
