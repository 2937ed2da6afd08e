package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Stage is a part of an installation that must stand before the next one is begun.
type Stage struct {
	// Name is the name of the stage that users see.
	Name    string
	Objects []*unstructured.Unstructured
}

// The stages, in their order.
const (
	// Namespaces come with the quota without which some clusters admit no pod of an operator.
	Namespaces = "namespace"
	CRDs       = "CRDs"
	// Rights come with the policies that narrow them.
	Rights   = "RBAC"
	Managers = "manager"
	// Webhooks come when managers have started, so that no request waits for an image that is being pulled. A manager
	// becomes ready when its webhooks are configured.
	Webhooks = "webhooks"
)

// Stages sorts objects into stages; empty ones are left out.
func Stages(objects []*unstructured.Unstructured) []Stage {
	var stages []Stage
	for _, name := range []string{Namespaces, CRDs, Rights, Managers, Webhooks} {
		var members []*unstructured.Unstructured
		for _, object := range objects {
			if StageOf(object) == name {
				members = append(members, object)
			}
		}
		if len(members) > 0 {
			stages = append(stages, Stage{Name: name, Objects: members})
		}
	}
	return stages
}

// StageOf returns the name of the stage that an object belongs to.
func StageOf(object *unstructured.Unstructured) string {
	switch kind := object.GetKind(); {
	case kind == "Namespace", kind == "ResourceQuota":
		return Namespaces
	case kind == "CustomResourceDefinition":
		return CRDs
	case slices.Contains([]string{
		"ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	}, kind):
		return Rights
	case kind == "MutatingWebhookConfiguration", kind == "ValidatingWebhookConfiguration":
		return Webhooks
	}
	return Managers
}
