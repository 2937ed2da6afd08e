package apply

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// NoCA is the reason why a webhook configuration or a CRD is not ready until a CA bundle is written into it.
const NoCA = "has no CA yet"

// notServed is the reason why a CRD is not ready until clients find its kind.
const notServed = "is not served yet"

// Ready reports whether a live object does its work, and if not, the condition that it waits for. Kinds that do nothing are
// ready.
func Ready(object *unstructured.Unstructured) (ready bool, waitsFor string) {
	switch object.GetKind() {
	case "Deployment":
		ready, waitsFor = rolledOut(object, "replicas", "updatedReplicas", "availableReplicas", number(object, "spec", "replicas"))
		if cause := ReplicaFailure(object); !ready && cause != "" {
			waitsFor += ": " + cause
		}
		return ready, waitsFor
	case "DaemonSet":
		return rolledOut(object, "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable",
			number(object, "status", "desiredNumberScheduled"))
	case "CustomResourceDefinition":
		if !Established(object) {
			return false, notServed
		}
	}
	if trusted(object) {
		return true, ""
	}
	return false, NoCA
}

// ReplicaFailure returns why the pods of a Deployment cannot be made, such as a quota or the pod security standard of the
// namespace; empty if they can.
func ReplicaFailure(deployment *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(deployment.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok && fields["type"] == "ReplicaFailure" && fields["status"] == "True" {
			message, _ := fields["message"].(string)
			return message
		}
	}
	return ""
}

// rolledOut reads the counts of a workload; the fields are below status.
func rolledOut(object *unstructured.Unstructured, total, updated, available string, desired int64) (ready bool, waitsFor string) {
	if number(object, "status", "observedGeneration") < object.GetGeneration() {
		return false, "is not observed yet"
	}
	if have := number(object, "status", updated); have < desired {
		return false, fmt.Sprintf("%d of %d pods are updated", have, desired)
	}
	if have := number(object, "status", total); have > desired {
		return false, fmt.Sprintf("%d old pods stay until new ones are available", have-desired)
	}
	have := number(object, "status", available)
	return have >= desired, fmt.Sprintf("%d of %d pods are available", have, desired)
}

// Established reports whether the API server accepts the kind of a CustomResourceDefinition. AllServed also waits until
// clients find it.
func Established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok && fields["type"] == "Established" {
			return fields["status"] == "True"
		}
	}
	return false
}

// Bundles returns the CA bundles of a webhook configuration, or of a CRD that is converted by a webhook: base64, empty
// where there is none yet.
func Bundles(object *unstructured.Unstructured) []string {
	var bundles []string
	webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	for _, webhook := range webhooks {
		if fields, ok := webhook.(map[string]any); ok {
			bundle, _, _ := unstructured.NestedString(fields, "clientConfig", "caBundle")
			bundles = append(bundles, bundle)
		}
	}
	if config, found, _ := unstructured.NestedMap(object.Object, "spec", "conversion", "webhook", "clientConfig"); found {
		bundle, _, _ := unstructured.NestedString(config, "caBundle")
		bundles = append(bundles, bundle)
	}
	return bundles
}

// trusted reports whether the API server knows the CA of all webhooks of an object.
func trusted(object *unstructured.Unstructured) bool {
	return !slices.Contains(Bundles(object), "")
}

func number(object *unstructured.Unstructured, path ...string) int64 {
	value, _, _ := unstructured.NestedInt64(object.Object, path...)
	return value
}
