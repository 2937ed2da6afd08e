package health

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// budgets is the resource of PodUnavailableBudgets, of feature "budget".
var budgets = schema.GroupVersionResource{Group: "policy.kruise.io", Version: "v1beta1", Resource: "podunavailablebudgets"} //nolint:gochecknoglobals // a constant

// unprotecting finds the budgets that protect no pod because their manager cannot read the workload. Nobody else would say so:
// what they ought to refuse happens.
func unprotecting(ctx context.Context, cluster *apply.Cluster, report *Report) ([]Finding, error) {
	if report.Feature != "budget" || !report.Healthy {
		return nil, nil
	}
	stored, err := cluster.List(ctx, budgets, "", "")
	if err != nil {
		return nil, fmt.Errorf("list the budgets: %w", err)
	}
	return unreadable(stored), nil
}

// unreadable are the budgets whose conditions say that they protect nothing.
func unreadable(stored []unstructured.Unstructured) (findings []Finding) {
	for _, b := range stored {
		conditions, _, _ := unstructured.NestedSlice(b.Object, "status", "conditions")
		for _, each := range conditions {
			c, _ := each.(map[string]any)
			if c["type"] != "ReplicasUnknown" || c["status"] != "True" {
				continue
			}
			kind, _, _ := unstructured.NestedString(b.Object, "spec", "targetRef", "kind")
			found := Finding{About: "budget", Trouble: fmt.Sprintf("PodUnavailableBudget %s/%s: %v", b.GetNamespace(), b.GetName(), c["message"])}
			switch c["reason"] {
			case "Forbidden":
				found.Help = "Grant the account budget-manager get, list and watch of kind " + kind + ", and get of its scale."
			case "NotServed":
				found.Help = "Install the CRD of kind " + kind + ", or correct spec.targetRef of the budget."
			default:
				continue // its pods are found, and count
			}
			findings = append(findings, found)
		}
	}
	return findings
}
