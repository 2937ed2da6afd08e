package setup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/featuregates"
)

// fill waits until the webhooks know the workloads that the stored spreads target.
func (s *settings) fill(ctx context.Context, env *manager.Environment) error {
	if !env.Options.FeatureGates.Enabled(featuregates.WorkloadSpread) {
		return nil
	}
	reader, err := s.workloads(ctx, env)
	if err != nil {
		return err
	}
	others := []client.Object{&corev1.Namespace{}, &corev1.Pod{}}
	return manager.AwaitKnown(ctx, env, &v1beta1.WorkloadSpreadList{}, others, func(ctx context.Context, spread *v1beta1.WorkloadSpread) error {
		if !s.scope.Complete(spread.Namespace) {
			return fmt.Errorf("the pods of namespace %s are not cached yet", spread.Namespace)
		}
		return reader.Known(ctx, spread)
	})
}
