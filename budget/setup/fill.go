package setup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// fill waits until the webhooks know which pods the stored budgets cover.
func (s *settings) fill(ctx context.Context, env *manager.Environment) error {
	if !isOn(env) {
		return nil
	}
	others := []client.Object{&corev1.Namespace{}, &corev1.Pod{}}
	return manager.AwaitKnown(ctx, env, &v1beta1.PodUnavailableBudgetList{}, others, func(ctx context.Context, b *v1beta1.PodUnavailableBudget) error {
		if !s.scope.Complete(b.Namespace) {
			return fmt.Errorf("the pods of namespace %s are not cached yet", b.Namespace)
		}
		return s.covers.Known(ctx, b)
	})
}
