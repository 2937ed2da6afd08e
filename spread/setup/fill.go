package setup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// fill waits until the webhooks know the workloads that the stored spreads target.
func (s *settings) fill(ctx context.Context, env *manager.Environment) error {
	if !env.Options.FeatureGates.Enabled(features.WorkloadSpread) {
		return nil
	}
	reader, err := s.workloads(ctx, env)
	if err != nil {
		return err
	}
	live, err := env.APIReader("admission")
	if err != nil {
		return fmt.Errorf("make a reader of spreads: %w", err)
	}
	stored := &v1beta1.WorkloadSpreadList{}
	if err := live.List(ctx, stored, client.InNamespace(env.Options.Namespace)); err != nil {
		return fmt.Errorf("list the stored spreads: %w", err)
	}
	kinds := []client.Object{&v1beta1.WorkloadSpread{}, &corev1.Namespace{}, &corev1.Pod{}}
	return env.AwaitCaches(ctx, kinds, func(ctx context.Context) error {
		for i := range stored.Items {
			spread := &stored.Items[i]
			err := env.Manager.GetCache().Get(ctx, client.ObjectKeyFromObject(spread), &v1beta1.WorkloadSpread{})
			switch {
			case apierrors.IsNotFound(err): // it has gone meanwhile
				continue
			case err != nil:
				return fmt.Errorf("read spread %s: %w", client.ObjectKeyFromObject(spread), err)
			case !s.scope.Complete(spread.Namespace):
				return fmt.Errorf("the pods of namespace %s are not cached yet", spread.Namespace)
			}
			if err := reader.Known(ctx, spread); err != nil {
				return err
			}
		}
		return nil
	})
}
