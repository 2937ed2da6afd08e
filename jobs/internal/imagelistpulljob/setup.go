package imagelistpulljob

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// SetUp adds the controller to the manager: events of a job wake it, and events of its ImagePullJobs that change the
// job's status. The index of owners of ImagePullJobs must have been added.
func SetUp(ctx context.Context, mgr ctrl.Manager, o pass.Settings) error {
	b, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o,
		Controller:  ControllerName,
		EventSource: "imagelistpulljob-controller",
		Kinds: map[client.Object]cache.ByObject{
			&v1beta1.ImageListPullJob{}: fastclient.Within(o.Namespace, cache.ByObject{}),
			&v1beta1.ImagePullJob{}:     fastclient.Within(o.Namespace, cache.ByObject{}),
		},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.ImageListPullJob{}).
		Owns(&v1beta1.ImagePullJob{}, builder.WithPredicates(childChanges())).
		WithOptions(o.Options(workers)).
		Complete(&reconciler{b})
	if err != nil {
		return fmt.Errorf("make the controller: %w", err)
	}
	return nil
}
