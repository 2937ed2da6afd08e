package manager

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/optional"
)

const (
	// fillTimeout is how long a replica that has started is not ready because of its caches.
	fillTimeout = time.Minute
	// fillPause is the time between two looks whether webhooks know what they need.
	fillPause = 100 * time.Millisecond
)

// AwaitCaches returns when the caches of the kinds are filled, and known returns no error, which is called again and again. If
// ctx ends first it returns what was missing.
func (e *Environment) AwaitCaches(ctx context.Context, kinds []client.Object, known func(context.Context) error) error {
	for _, kind := range kinds {
		if err := optional.Sync(ctx, e.Manager.GetCache(), kind); err != nil {
			return fmt.Errorf("cache %T: %w", kind, err)
		}
	}
	for {
		err := known(ctx)
		if err == nil {
			return nil
		}
		timer := e.Clock.NewTimer(fillPause)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
