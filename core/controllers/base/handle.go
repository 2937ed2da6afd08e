package base

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Memory is what a controller remembers of an object: a Controller, or what is built on it.
type Memory interface {
	// Wait is how long to leave the object alone.
	Wait(ctx context.Context, name types.NamespacedName) time.Duration
	// Forget drops what is remembered of an object that is gone.
	Forget(name types.NamespacedName)
}

// Handle runs one pass over the object of a request, unless the cache has yet to show what was written for
// it. look reads the world of the object, and run acts on what it saw; the error of look satisfies IsNotFound
// only when the object itself is gone.
func Handle[W any](
	ctx context.Context, m Memory, req ctrl.Request,
	look func(context.Context, types.NamespacedName) (W, error), run func(context.Context, W) (ctrl.Result, error),
) (ctrl.Result, error) {
	if wait := m.Wait(ctx, req.NamespacedName); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	world, err := look(ctx, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		m.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return run(ctx, world)
}
