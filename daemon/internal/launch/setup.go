package launch

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"

	"github.com/flotilla-project/flotilla/daemon/internal/podcache"
	"github.com/flotilla-project/flotilla/daemon/internal/podmarks"
)

// ControllerName is the name of the controller in logs, metrics and its user agent.
const ControllerName = "launchpriority"

// workers is how many pods are reconciled at a time by default.
const workers = 4

// ConfigMaps returns the cache of ConfigMaps with barriers, in one namespace or, when it is empty, in all.
func ConfigMaps(namespace string) cache.ByObject {
	return fastclient.Within(namespace, cache.ByObject{
		Label: labels.SelectorFromSet(labels.Set{podmarks.BarrierLabel: "true"}), Transform: fastclient.Trim,
	})
}

// SetUp adds the controller to the manager. The manager's cache must hold pods as podcache.ByObject and ConfigMaps as
// ConfigMaps define.
func SetUp(ctx context.Context, mgr ctrl.Manager, o pass.Settings) error {
	parts, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o,
		Controller:  ControllerName,
		EventSource: "container-launch-priority-controller",
		Kinds: map[client.Object]cache.ByObject{
			&corev1.Pod{}: podcache.ByObject(o.Namespace), &corev1.ConfigMap{}: ConfigMaps(o.Namespace),
		},
	})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&corev1.Pod{}, builder.WithPredicates(concerns())).
		Owns(&corev1.ConfigMap{}).
		WithOptions(o.Options(workers)).
		Complete(&reconciler{Controller: parts})
}
