package story

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// patient returns a client that writes again, for as long as Patience, while the API server cannot ask a webhook. On a
// busy machine an operator does not answer in time, or loses its Lease and starts again. The server has stored nothing
// then. While away, because a story has stopped an operator, it writes once.
func patient(c client.WithWatch, away *atomic.Bool) client.WithWatch {
	again := func(ctx context.Context, write func() error) error { return again(ctx, away, write) }
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return again(ctx, func() error { return c.Create(ctx, o, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return again(ctx, func() error { return c.Update(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			return again(ctx, func() error { return c.Patch(ctx, o, patch, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return again(ctx, func() error { return c.Delete(ctx, o, options...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, name string, o, sub client.Object, options ...client.SubResourceCreateOption) error {
			return again(ctx, func() error { return c.SubResource(name).Create(ctx, o, sub, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, o client.Object, options ...client.SubResourceUpdateOption) error {
			return again(ctx, func() error { return c.SubResource(name).Update(ctx, o, options...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, name string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
		) error {
			return again(ctx, func() error { return c.SubResource(name).Patch(ctx, o, patch, options...) })
		},
	})
}

// again repeats the write until the API server can ask its webhooks, or at once gives up while they are away.
func again(ctx context.Context, away *atomic.Bool, write func() error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for {
		err := write()
		if away.Load() || !starts(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(interval):
		}
	}
}

// starts reports that the webhook of an operator cannot answer yet.
func starts(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook") ||
		err != nil && strings.Contains(err.Error(), "denied the request") && strings.Contains(err.Error(), "has yet to fill")
}
