package manager_test

import (
	"context"
	"os"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/operator/manager"
)

// The whole main of an operator without webhooks.
func ExampleMain() {
	workers := 0
	os.Exit(manager.Main(manager.Operator{
		Feature:      "widget",
		FeatureGates: features.Shared(features.KruiseDaemon),
		CRDs:         []string{"widgets.example.com"},
		Flags:        func(flags *pflag.FlagSet) { flags.IntVar(&workers, "widget-workers", 3, "Widgets worked on at once.") },
		Setup: func(_ context.Context, env *manager.Environment) error {
			return builder.ControllerManagedBy(env.Manager).For(&corev1.ConfigMap{}).
				WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
				Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
					return reconcile.Result{}, nil
				}))
		},
	}))
}
