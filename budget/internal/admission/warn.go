package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/targets"
	"github.com/flotilla-project/flotilla/core/operator/admission"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/openkruise"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget/plan"
)

// warnTimeout limits how long a request waits for a warning.
const warnTimeout = time.Second

// Warn returns warnings about values that are allowed and probably not meant, independent of the covered pods.
func Warn(b *v1beta1.PodUnavailableBudget) []string {
	for _, none := range []string{"0", "0%"} {
		if m := b.Spec.MaxUnavailable; m != nil && m.String() == none {
			return []string{"spec.maxUnavailable: " + none + " blocks every eviction and update of these pods: node drains wait forever"}
		}
	}
	if m := b.Spec.MinAvailable; m != nil && m.String() == "100%" {
		return []string{"spec.minAvailable: 100% blocks every eviction and update of these pods: node drains wait forever"}
	}
	return nil
}

// WarnOfReplicas returns warnings about values that are probably not meant for a workload that wants so many pods.
func WarnOfReplicas(b *v1beta1.PodUnavailableBudget, workload string, replicas int32) []string {
	desired, err := plan.Desired(&b.Spec, replicas)
	at, limit := "spec.maxUnavailable", b.Spec.MaxUnavailable
	if limit == nil {
		at, limit = "spec.minAvailable", b.Spec.MinAvailable
	}
	switch {
	case err != nil || replicas == 0 || limit == nil:
		return nil
	case desired == 0:
		return []string{fmt.Sprintf("%s: %s of %d replicas leaves the pods of %s unprotected", at, limit, replicas, workload)}
	case desired >= replicas:
		return []string{fmt.Sprintf("%s: %s of %d replicas blocks every eviction and update of the pods of %s: node drains wait forever",
			at, limit, replicas, workload)}
	}
	return nil
}

// warnOfNamespace warns of a namespace that the webhooks are not called for, according to config/webhook.
func (w Budgets) warnOfNamespace(ctx context.Context, name string) []string {
	ns, err := fastclient.Get[corev1.Namespace](ctx, w.Cover.Cache, types.NamespacedName{Name: name})
	if err != nil {
		return nil
	}
	if _, exempt := ns.Labels["control-plane"]; exempt || name == metav1.NamespaceSystem {
		return []string{"this budget has no effect: namespace " + name + " is exempt (kube-system, flotilla-system, label control-plane)"}
	}
	return nil
}

// warnOfOpenKruise warns of another operator of budgets. It returns no warning if the answer is not available in time.
func (w Budgets) warnOfOpenKruise(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, warnTimeout)
	defer cancel()
	if answers, err := openkruise.Answers(ctx, w.Live); err != nil || !answers {
		return nil
	}
	return []string{openkruise.Trouble}
}

// warnOfOverlap names another budget that covers a pod of a new one. It returns no warning if the answer is not available
// in time: a condition reports the overlap later.
func (w Budgets) warnOfOverlap(ctx context.Context, req admission.Request[*v1beta1.PodUnavailableBudget]) []string {
	ctx, cancel := context.WithTimeout(ctx, warnTimeout)
	defer cancel()
	b := req.New.DeepCopy()
	b.Namespace = req.Namespace
	pods, _, err := w.Cover.Pods(ctx, b)
	if err != nil {
		return nil
	}
	other, pod, err := w.Cover.Overlap(ctx, b, pods)
	if err != nil || pod == "" {
		return nil
	}
	return []string{fmt.Sprintf("PodUnavailableBudget %s also covers pod %s: a disruption counts against both budgets and either can refuse it", other, pod)}
}

// warnOfTarget returns warnings about values that are probably not meant for the workload that the budget names. It returns
// no warning if the answer is not available in time.
func (w Budgets) warnOfTarget(ctx context.Context, b *v1beta1.PodUnavailableBudget) []string {
	ref := b.Spec.TargetReference
	if ref == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, warnTimeout)
	defer cancel()
	workload := ref.Kind + " " + ref.Name
	target, err := w.Cover.Targets.Get(ctx, cover.KindOf(ref), types.NamespacedName{Namespace: b.Namespace, Name: ref.Name})
	switch {
	case apierrors.IsNotFound(err):
		return []string{"spec.targetRef: " + workload + " not found: the budget has no effect until it is created"}
	case meta.IsNoMatchError(err):
		return []string{fmt.Sprintf("spec.targetRef: the cluster does not serve kind %s of %s", ref.Kind, ref.APIVersion)}
	case apierrors.IsForbidden(err):
		return []string{"spec.targetRef: the budget has no effect: the operator has no permission to read " + workload +
			". Grant get, list and watch of the kind to ServiceAccount budget-manager"}
	case err != nil:
		return nil
	}
	if b.Spec.ProtectTotalReplicas != nil {
		return WarnOfReplicas(b, workload, ptr.Deref(b.Spec.ProtectTotalReplicas, 0))
	}
	replicas, err := w.Cover.Targets.Replicas(ctx, target)
	if errors.Is(err, targets.ErrNoScale) {
		replicas.Spec, err = w.Cover.Targets.Unscaled(ctx, target)
	}
	if err != nil {
		return nil
	}
	return WarnOfReplicas(b, workload, replicas.Spec)
}
