package admission

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/operator/admission"
)

// gateSuffix tells the path of the second webhook for new pods from that of the first.
const gateSuffix = "-readiness-gate"

func pods() admission.Kind[*corev1.Pod] {
	return admission.NewKind("", "Pod", admission.Hub[corev1.Pod]("v1"))
}

// Webhook answers the API server about new pods. It reads nothing but the pod.
type Webhook struct {
	// Suffix is five random characters of a name, each time others.
	Suffix func() string
}

// Launch puts barriers into pods with launch priorities.
func (w Webhook) Launch() admission.Endpoint {
	return endpoint(pods().MutatePath(), func(pod *corev1.Pod, name string) error {
		if errs := Order(pod, w.Suffix); len(errs) > 0 {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, name, errs)
		}
		return nil
	})
}

// ReadinessGate puts the gate KruisePodReady into every pod (gate KruisePodReadinessGate).
func (w Webhook) ReadinessGate() admission.Endpoint {
	return endpoint(pods().MutatePath()+gateSuffix, func(pod *corev1.Pod, _ string) error {
		Gate(pod)
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
