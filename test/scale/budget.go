package scale

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	budget "github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

const (
	// evictionRounds is how many times a part of the pods is evicted at once until all have been.
	evictionRounds = 10
	// budgets is the resource of PodUnavailableBudgets.
	budgets = "podunavailablebudgets"
)

// budgetParts are what is measured of PodUnavailableBudgets.
func (b *bench) budgetParts() []part {
	return []part{{name: "budget", run: b.budget}, {name: "many", run: b.manyBudgets, apart: true}}
}

// budget measures a budget that begins to cover the pods of a ReplicaSet, and then the eviction of all of these, a tenth at a
// time. The budget allows twice as many, so it refuses none.
func (b *bench) budget(ctx context.Context) ([]Row, error) {
	w := replicaSet()
	pods, err := b.create(ctx, w)
	if err != nil {
		return nil, err
	}
	if err := b.resize(ctx, w, pods, b.Pods); err != nil {
		return nil, err
	}
	pub := &budget.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: w.GetNamespace(), Name: name}}
	pub.Spec.Selector = selector()
	pub.Spec.MaxUnavailable = new(intstr.FromString("20%"))
	full := func() bool {
		s := pub.Status
		return s.ObservedGeneration == pub.Generation && int(s.CurrentAvailable) == b.Pods && len(s.DisruptedPods) == 0
	}
	covering, err := b.cost(ctx, Row{Load: "PodUnavailableBudget of existing pods", Pods: b.Pods}, b.ofOperator(""), func() (time.Time, error) {
		began := time.Now()
		if err := b.accepted(ctx, pub); err != nil {
			return began, err
		}
		all := load{pods: b.Pods, done: isMarked}
		if err := until(ctx, "the marks of the pods", func() (bool, error) { return all.complete(pods), nil }); err != nil {
			return began, err
		}
		return began, b.reported(ctx, pub, full)
	})
	if err != nil {
		return nil, err
	}
	if err := b.called(ctx, w.Object, budget.RelatedAnnotation, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return []Row{covering}, err
	}
	evicting := Row{Load: "evictions within a PodUnavailableBudget", Pods: b.Pods, Of: budgets}
	evicting, err = b.cost(ctx, evicting, b.ofOperator(""), func() (time.Time, error) {
		pods.begin(b.Pods)
		began := time.Now()
		for some := range slices.Chunk(namesIn(pods, w.GetNamespace()), max(b.Pods/evictionRounds, 1)) {
			if err := b.evict(ctx, w.GetNamespace(), some); err != nil {
				return began, err
			}
			if err := b.reported(ctx, pub, full); err != nil {
				return began, err
			}
		}
		return began, nil
	})
	if err != nil {
		return []Row{covering}, err
	}
	evicting.observe(pods, 0)
	if err := b.client.Delete(ctx, pub); err != nil {
		return nil, fmt.Errorf("delete the budget: %w", err)
	}
	return []Row{covering, evicting}, b.resize(ctx, w, pods, 0)
}

// evict evicts pods of a namespace at once, each again until it is granted: the budget's webhook may take too long on a busy
// machine.
func (b *bench) evict(ctx context.Context, space string, names []string) error {
	err := forEach(ctx, len(names), func(ctx context.Context, i int) error {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: names[i]}}
		return until(ctx, "the eviction of pod "+names[i], func() (bool, error) {
			err := b.kube.PolicyV1().Evictions(space).Evict(ctx, eviction)
			return err == nil || apierrors.IsNotFound(err), nil
		})
	})
	if err != nil {
		return fmt.Errorf("evict pods: %w", err)
	}
	return nil
}

// isMarked reports whether the operator has marked the pod as one that a budget covers.
func isMarked(pod *corev1.Pod) bool { return pod.Annotations[budget.RelatedAnnotation] != "" }
