package manager

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
)

const (
	// fillTimeout is how long a replica that has started is not ready because of its caches.
	fillTimeout = time.Minute
	// fillPause is the time between two looks whether webhooks have the data that they need.
	fillPause = 100 * time.Millisecond
)

// AwaitKnown returns when webhooks have the data that they need about each stored object of a kind, which list is for. It
// asks the server for the objects, waits until their cache and the caches of the other kinds are filled, and then asks
// known about each of them, again and again, until there is no error. An object that is deleted in between need not be
// known. AwaitKnown returns an error at once if it cannot list the objects, and an error about the missing data if ctx
// ends first.
func AwaitKnown[T any, O fastclient.Object[T]](
	ctx context.Context, e *Environment, list client.ObjectList, others []client.Object, known func(context.Context, O) error,
) error {
	live, err := e.APIReader("admission")
	if err != nil {
		return fmt.Errorf("make a reader of stored objects: %w", err)
	}
	if err := live.List(ctx, list, client.InNamespace(e.Options.Namespace)); err != nil {
		return fmt.Errorf("list stored objects: %w", err)
	}
	for _, kind := range append([]client.Object{O(new(T))}, others...) {
		if err := optional.Sync(ctx, e.Manager.GetCache(), kind); err != nil {
			return fmt.Errorf("cache %T: %w", kind, err)
		}
	}
	for {
		err := meta.EachListItem(list, func(item runtime.Object) error { return knowsOne(ctx, e, item.(O), known) })
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

// knowsOne asks about an object that the cache still has.
func knowsOne[T any, O fastclient.Object[T]](ctx context.Context, e *Environment, o O, known func(context.Context, O) error) error {
	err := e.Manager.GetCache().Get(ctx, client.ObjectKeyFromObject(o), O(new(T)))
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", client.ObjectKeyFromObject(o), err)
	}
	return known(ctx, o)
}
