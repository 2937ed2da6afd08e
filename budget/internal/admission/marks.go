package admission

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/operator/admission"

	"github.com/flotilla-project/flotilla/budget/internal/marks"
)

// Marking returns the endpoint that marks new pods. If it cannot find out the budgets of a pod, the controller marks the
// pod later.
func (w Pods) Marking() admission.Endpoint {
	return admission.Endpoint{Path: podKind().MutatePath(), Handler: podKind().Defaulting(func(ctx context.Context, req admission.Request[*corev1.Pod]) error {
		if req.Operation != admissionv1.Create {
			return nil
		}
		pod := *req.New
		pod.Namespace = req.Namespace
		budgets, err := w.Cover.Budgets(ctx, &pod)
		if err != nil {
			log.FromContext(ctx).Error(err, "The annotation of a new pod is set later", "namespace", req.Namespace, "pod", req.Name)
			return nil
		}
		marks.Set(req.New, budgets)
		return nil
	})}
}
