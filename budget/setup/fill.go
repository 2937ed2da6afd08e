package setup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// fill waits until the webhooks know which pods the stored budgets cover.
func (s *settings) fill(ctx context.Context, env *manager.Environment) error {
	if !isOn(env) {
		return nil
	}
	live, err := env.APIReader("admission")
	if err != nil {
		return fmt.Errorf("make a reader of budgets: %w", err)
	}
	stored := &v1beta1.PodUnavailableBudgetList{}
	if err := live.List(ctx, stored, client.InNamespace(env.Options.Namespace)); err != nil {
		return fmt.Errorf("list the stored budgets: %w", err)
	}
	kinds := []client.Object{&v1beta1.PodUnavailableBudget{}, &corev1.Namespace{}, &corev1.Pod{}}
	return env.AwaitCaches(ctx, kinds, func(ctx context.Context) error {
		for i := range stored.Items {
			if err := s.knows(ctx, env, &stored.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// knows returns an error while it is not known which pods the budget covers. A budget that goes meanwhile covers none.
func (s *settings) knows(ctx context.Context, env *manager.Environment, b *v1beta1.PodUnavailableBudget) error {
	err := env.Manager.GetCache().Get(ctx, client.ObjectKeyFromObject(b), &v1beta1.PodUnavailableBudget{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read budget %s: %w", client.ObjectKeyFromObject(b), err)
	case !s.scope.Complete(b.Namespace):
		return fmt.Errorf("the pods of namespace %s are not cached yet", b.Namespace)
	}
	return s.covers.Known(ctx, b)
}
