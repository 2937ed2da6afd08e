package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/features"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
)

func podKind() admission.Kind[*corev1.Pod] {
	return admission.NewKind("", "Pod", admission.Hub[corev1.Pod]("v1"))
}

// Pods answers the API server about disruptions of pods.
type Pods struct {
	Cover  cover.Reader
	Ledger Ledger
	// Live reads pods from the server, no more often than it has time for.
	Live  client.Reader
	Gates features.Set
	// Refused, unless nil, is called for each refusal that is no dry run.
	Refused func(Refusal)
}

// Ledger records what budgets grant, as ledger.Ledger does.
type Ledger interface {
	// Check returns why a budget refuses the request now, empty if it does not. It records nothing.
	Check(b *v1beta1.PodUnavailableBudget, req disruption.Request) string
	// Ask records the request and returns an empty text if the budget grants it; otherwise it returns the reason for the
	// refusal.
	Ask(ctx context.Context, b *v1beta1.PodUnavailableBudget, req disruption.Request) (refused string, err error)
}

// Refusal is a disruption that a budget has refused.
type Refusal struct {
	Pod       *corev1.Pod
	Budget    *v1beta1.PodUnavailableBudget
	Operation v1beta1.PubOperation
	// User is the name of the user that sent the request.
	User string
	// Why is the reason that the user reads.
	Why string
}

// attempt is a request that may disrupt a pod.
type attempt struct {
	pod    *corev1.Pod
	op     v1beta1.PubOperation
	user   string
	dryRun bool
	// isRead is true if the pod was read from the server, and not from the request.
	isRead bool
}

// Validating returns the endpoint for pods and their subresources eviction, resize and status.
func (w Pods) Validating() admission.Endpoint {
	judge := podKind().Validating(func(ctx context.Context, req admission.Request[*corev1.Pod]) (admission.Findings, error) {
		return admission.Findings{}, w.Change(ctx, req)
	})
	handler := judge.Subresource("status", judge).Subresource("resize", judge).Subresource("eviction", admission.Evictions().Validating(w.evict))
	return admission.Endpoint{Path: podKind().ValidatePath(), Handler: handler}
}

// Change answers deletions and updates: it returns the error with which a request is refused.
func (w Pods) Change(ctx context.Context, req admission.Request[*corev1.Pod]) error {
	d := attempt{pod: req.Old, user: req.User.Username, dryRun: req.DryRun}
	if req.Old == nil {
		return nil
	}
	if err := validateStored(req); err != nil {
		return err
	}
	switch {
	case req.Operation == admissionv1.Delete && req.Subresource == "":
		d.op = v1beta1.DeleteOperation
	case req.Operation != admissionv1.Update:
		return nil
	case req.Subresource == "status":
		d.op = disruption.OfStatus(req.Old, req.New)
	case req.Subresource == "resize":
		d.op = disruption.OfResize(req.Old, req.New)
	default:
		if err := w.keepMarks(ctx, req.Old, req.New); err != nil {
			return err
		}
		d.op = disruption.OfUpdate(req.Old, req.New)
	}
	return w.judge(ctx, d)
}

// evict answers evictions. Their requests hold no pod: the server is asked, as the cache may show the earlier pod of the
// same name.
func (w Pods) evict(ctx context.Context, req admission.Request[*policyv1.Eviction]) (admission.Findings, error) {
	if req.Operation != admissionv1.Create || !w.isOn(v1beta1.EvictOperation) {
		return admission.Findings{}, nil
	}
	d := attempt{
		pod:    &corev1.Pod{},
		op:     v1beta1.EvictOperation,
		user:   req.User.Username,
		isRead: true,
	}
	d.dryRun = req.DryRun || req.New.DeleteOptions != nil && slices.Contains(req.New.DeleteOptions.DryRun, metav1.DryRunAll)
	name := types.NamespacedName{Namespace: req.Namespace, Name: req.Name}
	err := w.Live.Get(ctx, name, d.pod)
	if apierrors.IsNotFound(err) {
		return admission.Findings{}, nil // the server answers that itself
	}
	if err != nil {
		return admission.Findings{}, failed(d, fmt.Errorf("read pod %s: %w", name, err))
	}
	return admission.Findings{}, w.judge(ctx, d)
}

// isOn reports whether the operation is checked at all.
func (w Pods) isOn(op v1beta1.PubOperation) bool {
	switch op {
	case v1beta1.DeleteOperation, v1beta1.EvictOperation:
		return w.Gates.Enabled(featuregates.PodUnavailableBudgetDeleteGate)
	case v1beta1.UpdateOperation, v1beta1.ResizeOperation:
		return w.Gates.Enabled(featuregates.PodUnavailableBudgetUpdateGate)
	}
	return false // the request disrupts nothing
}

// isEnding reports whether the namespace is being deleted with all its pods. No client waits for these pods any more.
func (w Pods) isEnding(ctx context.Context, namespace string) bool {
	ns, err := fastclient.Get[corev1.Namespace](ctx, w.Cover.Cache, types.NamespacedName{Name: namespace})
	return err == nil && ns.DeletionTimestamp != nil
}

// judge asks every budget that covers the pod.
func (w Pods) judge(ctx context.Context, d attempt) error {
	if !w.isOn(d.op) || !disruption.IsProtected(d.pod) || w.isEnding(ctx, d.pod.Namespace) {
		return nil
	}
	if !d.isRead {
		if is, err := w.isThere(ctx, d.pod); err != nil || !is {
			return err
		}
	}
	budgets, err := w.Cover.Budgets(ctx, d.pod)
	if err != nil {
		return failed(d, err)
	}
	request := disruption.Request{
		Pod:         d.pod,
		Operation:   d.op,
		ResizeApart: w.Gates.Enabled(featuregates.InPlacePodVerticalScaling),
	}
	by, why, err := w.ask(ctx, budgets, request, d.dryRun)
	switch {
	case err != nil:
		return failed(d, err)
	case by != nil && !w.isLost(ctx, d):
		return w.refuse(d, by, why)
	}
	return nil
}

// ask returns the budget that refuses the request, and why; nil if all grant it. All of them are asked before one is
// charged.
func (w Pods) ask(ctx context.Context, budgets []*v1beta1.PodUnavailableBudget, request disruption.Request, dryRun bool) (by *v1beta1.PodUnavailableBudget, why string, err error) {
	if dryRun || len(budgets) > 1 {
		for _, b := range budgets {
			if why := w.Ledger.Check(b, request); why != "" {
				return b, why, nil
			}
		}
	}
	if dryRun {
		return nil, "", nil
	}
	for _, b := range budgets {
		if why, err := w.Ledger.Ask(ctx, b, request); err != nil || why != "" {
			return b, why, err
		}
	}
	return nil, "", nil
}

// isLost reports whether the pod is removed, as the garbage collector of pods does, while its node is gone.
func (w Pods) isLost(ctx context.Context, d attempt) bool {
	if removes := d.op == v1beta1.DeleteOperation || d.op == v1beta1.EvictOperation; !removes || d.pod.Spec.NodeName == "" {
		return false
	}
	_, err := w.Cover.Targets.Get(ctx, schema.GroupKind{Kind: "Node"}, types.NamespacedName{Name: d.pod.Spec.NodeName})
	return apierrors.IsNotFound(err)
}

// refuse returns an error with the status that the client understands: drains repeat an eviction for 429 alone, and not in
// silence, as they would with a time to wait. By the cause, operators distinguish refusals of budgets from other refusals.
func (w Pods) refuse(d attempt, b *v1beta1.PodUnavailableBudget, why string) error {
	if w.Refused != nil && !d.dryRun {
		w.Refused(Refusal{
			Pod:       d.pod,
			Budget:    b,
			Operation: d.op,
			User:      d.user,
			Why:       why,
		})
	}
	answer := apierrors.NewForbidden(corev1.Resource("pods"), d.pod.Name, errors.New(why))
	if d.op == v1beta1.EvictOperation {
		answer = apierrors.NewTooManyRequests(why, 0)
	}
	answer.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	return answer
}

// failed returns the error for a request that could not be judged, or that may or may not be recorded. Drains try again
// after 429 only.
func failed(d attempt, err error) error {
	if d.op == v1beta1.EvictOperation {
		return apierrors.NewTooManyRequests(err.Error(), 0)
	}
	return err
}

// keepMarks refuses to take from a pod the marks by which webhooks are called for it, while a budget covers it.
func (w Pods) keepMarks(ctx context.Context, before, after *corev1.Pod) error {
	if cover.Mark(before) == "" || cover.Mark(before) == cover.Mark(after) {
		return nil
	}
	budgets, err := w.Cover.Budgets(ctx, after)
	if err != nil || len(budgets) == 0 || budgets[0].Name == cover.Mark(after) {
		return err
	}
	return apierrors.NewForbidden(corev1.Resource("pods"), before.Name,
		fmt.Errorf("annotation %s is set by the operator: PodUnavailableBudget %s covers the pod", v1beta1.RelatedAnnotation, budgets[0].Name))
}
