// Package setup describes the Beacon operator.
package setup

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/operator/manager"

	"github.com/flotilla-project/flotilla/beacon/api/v1beta1"
	"github.com/flotilla-project/flotilla/beacon/internal/featuregates"
)

// Operator is the Beacon operator.
func Operator() manager.Operator {
	return manager.Operator{
		Feature:      "beacon",
		FeatureGates: featuregates.All(),
		Schemes:      []func(*runtime.Scheme) error{v1beta1.AddToScheme},
		CRDs:         []string{"beacons.apps.kruise.io"},
		Setup: func(_ context.Context, env *manager.Environment) error {
			return builder.ControllerManagedBy(env.Manager).For(&v1beta1.Beacon{}).
				Complete(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
					return reconcile.Result{}, nil
				}))
		},
	}
}
