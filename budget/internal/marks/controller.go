package marks

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/later"
	"github.com/flotilla-project/flotilla/core/controllers/pass"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/wakeups"
)

const (
	// PodController is the name of the controller of pods in logs, metrics and its user agent.
	PodController = "podmarks"
	// workers is how many pods are marked at a time.
	workers = 5
	// markIndex finds pods by the budget in their marks.
	markIndex = "mark"
)

// AddIndexes adds the index of pods by their marks.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &corev1.Pod{}, markIndex, func(o client.Object) []string {
		if mark := cover.Mark(o); mark != "" {
			return []string{mark}
		}
		return nil
	})
}

// podMarks marks pods.
type podMarks struct {
	*pass.Controller
	cover cover.Reader
}

// Options describe the controller that marks pods.
type Options struct {
	pass.Settings
	// Cover reads which pods budgets cover. Its Cache is set by SetUpPods.
	Cover cover.Reader
	// Pods is how pods are cached.
	Pods cache.ByObject
	// Chosen has the budgets that may cover other pods than before although neither they nor the pods have changed.
	Chosen <-chan event.GenericEvent
}

// SetUpPods adds the controller that marks pods.
func SetUpPods(ctx context.Context, mgr ctrl.Manager, o Options) error {
	b, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o.Settings,
		Controller:  PodController,
		EventSource: "podunavailablebudget-controller",
		Kinds:       map[client.Object]cache.ByObject{&corev1.Pod{}: o.Pods, &v1beta1.PodUnavailableBudget{}: {}},
	})
	if err != nil {
		return err
	}
	o.Cover.Cache = b.Reader
	r := &podMarks{Controller: b, cover: o.Cover}
	budgets := wakeups.New(r.podsOf)
	if err := mgr.Add(manager.RunnableFunc(budgets.Run)); err != nil {
		return fmt.Errorf("add the events of budgets: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(PodController).
		For(&corev1.Pod{}, builder.WithPredicates(changes())).
		Watches(&v1beta1.PodUnavailableBudget{}, budgetEvents(budgets), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(o.Chosen, budgetEvents(budgets))).
		WithOptions(o.Options(workers)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("make the controller of marks on pods: %w", err)
	}
	return nil
}

// podsOf returns the pods that the budget covers and that have another mark or none, and the pods that have its mark and
// that it does not cover. While the covered pods are unknown, it returns all pods with its mark.
func (r *podMarks) podsOf(ctx context.Context, key types.NamespacedName) ([]reconcile.Request, error) {
	covered, err := r.coveredBy(ctx, key)
	if err != nil {
		err = fmt.Errorf("find the pods of budget %s: %w", key, err)
	}
	marked, listErr := fastclient.ByIndex[corev1.Pod](ctx, r.Reader, key.Namespace, markIndex, key.Name)
	if listErr != nil {
		err = errors.Join(err, fmt.Errorf("list the pods with the mark of budget %s: %w", key, listErr))
	}
	return requests(unlike(key.Name, covered, marked)), err
}

// coveredBy returns the pods that the budget covers: none once it is gone or going.
func (r *podMarks) coveredBy(ctx context.Context, key types.NamespacedName) ([]*corev1.Pod, error) {
	b, err := fastclient.Get[v1beta1.PodUnavailableBudget](ctx, r.Reader, key)
	if apierrors.IsNotFound(err) || err == nil && b.DeletionTimestamp != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pods, _, err := r.cover.Pods(ctx, b)
	if lasts(b.Spec.TargetReference, err) {
		return pods, nil
	}
	return pods, err
}

// lasts reports whether an error about the pods of a budget means that its target is not there, or is of a kind that cannot
// be read. Pods that come later wake themselves, and the passes over a budget wake the pods of kinds that may select
// others.
func lasts(target *v1beta1.TargetReference, err error) bool {
	switch {
	case apierrors.IsNotFound(err):
		return true
	case err == nil || target == nil:
		return false
	}
	_, unreadable := cover.Unreadable(target, nil, err)
	return unreadable && cover.MaySelect(cover.KindOf(target))
}

// unlike returns the covered pods that have not the mark, and the marked ones that are not covered.
func unlike(mark string, covered, marked []*corev1.Pod) []*corev1.Pod {
	is := make(map[types.UID]bool, len(covered))
	var all []*corev1.Pod
	for _, pod := range covered {
		if is[pod.UID] = true; cover.Mark(pod) != mark {
			all = append(all, pod)
		}
	}
	for _, pod := range marked {
		if !is[pod.UID] {
			all = append(all, pod)
		}
	}
	return all
}

func requests(pods []*corev1.Pod) []reconcile.Request {
	all := make([]reconcile.Request, len(pods))
	for i, pod := range pods {
		all[i].NamespacedName = client.ObjectKeyFromObject(pod)
	}
	return all
}

// Reconcile runs one pass over a pod.
func (r *podMarks) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, func(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
		pod, err := fastclient.Get[corev1.Pod](ctx, r.Reader, key)
		if err != nil {
			return pass.Pass{}, fmt.Errorf("read pod %s: %w", key, err)
		}
		if pod.DeletionTimestamp != nil {
			return pass.Pass{Object: pod}, nil
		}
		budgets, err := r.cover.Budgets(ctx, pod)
		if err != nil {
			return pass.Pass{}, fmt.Errorf("find the budgets of pod %s: %w", key, later.OfAnother(err))
		}
		now := r.Clock.Now()
		return pass.Pass{Object: pod, Plan: ofPod(pod, budgets, r.KnownRefusals(pod, nil, 0, now), metav1.NewTime(now))}, nil
	})
}
