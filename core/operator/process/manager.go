package process

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
)

// fills is how long a manager that is asked to end may still fill its caches. Most do so within milliseconds.
const fills = 2 * time.Second

// RunManager runs a manager of controllers until ctx ends, and returns when it has ended.
//
// A manager that still fills its caches is left alone, and nil returned: it has no Lease, and runs no controller. Of
// controller-runtime v0.25 it would neither end nor rest then (the loop in runnableGroup.Start), and a cache that may not be
// read is never filled. The process ends with it.
func RunManager(ctx context.Context, manager ctrlmanager.Manager, clock clock.Clock) error {
	filled := make(cachesFilled)
	if err := manager.Add(filled); err != nil {
		return fmt.Errorf("follow the start of the manager: %w", err)
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer end()
		select {
		case <-filled:
		case <-ended:
			return
		}
		select {
		case <-ctx.Done():
		case <-ended:
		}
	}()
	var err error
	go func() {
		defer close(ended)
		err = manager.Start(running)
	}()
	select {
	case <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case <-filled:
		<-ended
		return err
	case <-ended:
		return err
	case <-clock.After(fills):
		return nil
	}
}

// cachesFilled is closed by the manager once its caches are filled.
type cachesFilled chan struct{}

// Start is called by the manager.
func (c cachesFilled) Start(ctx context.Context) error {
	close(c)
	<-ctx.Done()
	return nil
}

// NeedLeaderElection reports that every replica starts it.
func (c cachesFilled) NeedLeaderElection() bool { return false }
