package podunavailablebudget

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/targets"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
)

const (
	// ControllerName is the name of the controller in logs, metrics and its user agent.
	ControllerName = "podunavailablebudget"
	// workers is how many budgets are reconciled at a time by default.
	workers = 3
	// recheck is how often a budget is looked at whose workloads send no events: they are not there, cannot be read, or may
	// say in their status which pods they have.
	recheck = 30 * time.Second
)

// SetUp adds the controller to the manager: events of a budget wake it, and those of pods and workloads that concern it.
// The indexes of package cover must have been added. chosen, which somebody must read, gets the budgets after each pass
// whose targets may say in their status which pods they have.
func SetUp(ctx context.Context, mgr ctrl.Manager, o base.Settings, reader *targets.Reader, chosen chan<- event.GenericEvent) error {
	b, err := base.New(ctx, mgr, base.Options{
		Settings: o, Controller: ControllerName, EventSource: "podunavailablebudget-controller",
		Kinds: map[client.Object]cache.ByObject{&v1beta1.PodUnavailableBudget{}: {}, &corev1.Pod{}: Pods(o.Namespace)},
	})
	if err != nil {
		return err
	}
	r := &reconciler{
		Controller: b, cover: cover.Reader{Cache: b.Reader, Targets: reader},
		memory: &memory{of: map[types.NamespacedName]remembered{}}, workloads: newWorkloads(mgr),
		chosen: chosen,
	}
	b.AddMemories(r.memory, r.workloads)
	if err := mgr.Add(manager.RunnableFunc(r.workloads.run)); err != nil {
		return fmt.Errorf("add the watches of workloads: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.PodUnavailableBudget{}).
		Watches(&v1beta1.PodUnavailableBudget{}, neighbours(b.Reader)).
		Watches(&corev1.Pod{}, pods(r.cover)).
		WatchesRawSource(r.workloads.source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(o.Workers, workers)}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("make the controller: %w", err)
	}
	return nil
}
