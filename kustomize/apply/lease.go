package apply

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LeaseOf returns the Lease of a manager's Deployment without its content, as the manager's flags name it; nil if there is no
// manager, or one without leader election.
func LeaseOf(manager *unstructured.Unstructured) *unstructured.Unstructured {
	if manager == nil {
		return nil
	}
	lease := &unstructured.Unstructured{}
	lease.SetAPIVersion("coordination.k8s.io/v1")
	lease.SetKind("Lease")
	lease.SetNamespace(manager.GetNamespace())
	lease.SetName(manager.GetName())
	containers, _, _ := unstructured.NestedSlice(manager.Object, "spec", "template", "spec", "containers")
	for _, container := range containers {
		fields, _ := container.(map[string]any)
		arguments, _, _ := unstructured.NestedStringSlice(fields, "args")
		for _, argument := range arguments {
			switch flag, value, _ := strings.Cut(argument, "="); flag {
			case "--enable-leader-election":
				if value == "false" {
					return nil
				}
			case "--leader-election-id":
				lease.SetName(value)
			case "--leader-election-namespace":
				lease.SetNamespace(value)
			}
		}
	}
	return lease
}
