// Package budgets finds PodUnavailableBudgets that protect no pod.
package budgets

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// Reasons of condition ReplicasUnknown with which a budget protects no pod.
const (
	Forbidden = "Forbidden"
	NotServed = "NotServed"
)

// Account is the ServiceAccount of the manager.
func Account() types.NamespacedName {
	return types.NamespacedName{Namespace: catalog.Namespace, Name: "budget-manager"}
}

// Idle returns the name of a budget that protects no pod for this reason, and the help for it. Both are empty for another
// reason: with it, the pods of the budget are found, and count.
func Idle(budget *unstructured.Unstructured, reason string) (name, help string) {
	kind, _, _ := unstructured.NestedString(budget.Object, "spec", "targetRef", "kind")
	switch reason {
	case Forbidden:
		help = "Grant ServiceAccount " + Account().Name + " the permissions get, list and watch for kind " + kind + ", and get for its scale subresource."
	case NotServed:
		help = "Install the CRD of kind " + kind + ", or correct spec.targetRef of the budget."
	default:
		return "", ""
	}
	return fmt.Sprintf("PodUnavailableBudget %s/%s", budget.GetNamespace(), budget.GetName()), help
}

// Target returns the kind of the workload that a budget names, and false if it names none.
func Target(budget *unstructured.Unstructured) (schema.GroupKind, bool) {
	target, _, _ := unstructured.NestedStringMap(budget.Object, "spec", "targetRef")
	return schema.FromAPIVersionAndKind(target["apiVersion"], target["kind"]).GroupKind(), target["kind"] != ""
}
