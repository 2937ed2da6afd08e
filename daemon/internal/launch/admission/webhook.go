package admission

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/operator/admission"
)

// readinessGateSuffix distinguishes the path of the second webhook for new pods from the path of the first.
const readinessGateSuffix = "-readiness-gate"

func pods() admission.Kind[*corev1.Pod] {
	return admission.NewKind("", "Pod", admission.Hub[corev1.Pod]("v1"))
}

// Webhook has the webhooks for new pods. It reads nothing but the pod.
type Webhook struct {
	// Suffix returns five random characters for a name.
	Suffix func() string
}

// Launch adds barriers to pods with launch priorities.
func (w Webhook) Launch() admission.Endpoint {
	return endpoint(pods().MutatePath(), func(pod *corev1.Pod, name string) error {
		if errs := AddBarriers(pod, w.Suffix); len(errs) > 0 {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, name, errs)
		}
		return nil
	})
}

// ReadinessGate adds readiness gate KruisePodReady to every pod (feature gate KruisePodReadinessGate).
func (w Webhook) ReadinessGate() admission.Endpoint {
	return endpoint(pods().MutatePath()+readinessGateSuffix, func(pod *corev1.Pod, _ string) error {
		AddReadinessGate(pod)
		return nil
	})
}

func endpoint(path string, change func(pod *corev1.Pod, name string) error) admission.Endpoint {
	return admission.Endpoint{Path: path, Handler: pods().Defaulting(func(_ context.Context, req admission.Request[*corev1.Pod]) error {
		if req.Operation != admissionv1.Create {
			return nil
		}
		return change(req.New, req.Name)
	})}
}
