package health

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	known "github.com/flotilla-project/flotilla/kustomize/budgets"
)

// budgets is the resource of PodUnavailableBudgets, of feature "budget".
var budgets = schema.GroupVersionResource{Group: "policy.kruise.io", Version: "v1beta1", Resource: "podunavailablebudgets"} //nolint:gochecknoglobals // a constant

// unprotecting finds the budgets that protect no pod because their manager cannot read the workload. No other check would
// show this: the writes that such a budget ought to refuse succeed.
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

// unreadable are the budgets with conditions which report that they protect nothing.
func unreadable(stored []unstructured.Unstructured) (findings []Finding) {
	for _, b := range stored {
		conditions, _, _ := unstructured.NestedSlice(b.Object, "status", "conditions")
		for _, each := range conditions {
			c, _ := each.(map[string]any)
			if c["type"] != "ReplicasUnknown" || c["status"] != "True" {
				continue
			}
			reason, _ := c["reason"].(string)
			name, help := known.Idle(&b, reason)
			if name == "" {
				continue
			}
			findings = append(findings, Finding{
				About:   "budget",
				Trouble: fmt.Sprintf("%s: %v", name, c["message"]),
				Help:    help,
			})
		}
	}
	return findings
}
