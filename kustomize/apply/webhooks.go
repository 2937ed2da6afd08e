package apply

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// LenientAnnotation marks a webhook configuration that ignores failures until its operator is ready.
const LenientAnnotation = "apps.kruise.io/lenient-until-ready"

// Lenient returns a webhook configuration whose webhooks reject nothing while they do not answer, and whether it differs from
// the one given.
func Lenient(configuration *unstructured.Unstructured) (lenient *unstructured.Unstructured, differs bool) {
	lenient = configuration.DeepCopy()
	webhooks, _, _ := unstructured.NestedSlice(lenient.Object, "webhooks")
	for _, webhook := range webhooks {
		if webhook, ok := webhook.(map[string]any); ok && webhook["failurePolicy"] != "Ignore" {
			webhook["failurePolicy"], differs = "Ignore", true
		}
	}
	if !differs {
		return configuration, false
	}
	lenient.Object["webhooks"] = webhooks
	annotations := lenient.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[LenientAnnotation] = "true"
	lenient.SetAnnotations(annotations)
	return lenient, true
}

// IsLenient reports whether a live webhook configuration still ignores failures, because a run ended before its operator was
// ready.
func IsLenient(live *unstructured.Unstructured) bool {
	return live.GetAnnotations()[LenientAnnotation] != ""
}
