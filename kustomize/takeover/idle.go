package takeover

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/budgets"
)

// budgetCRD is the definition of budgets.
const budgetCRD = "podunavailablebudgets.policy.kruise.io"

// server has the API server's answers about the kinds of workloads.
type server interface {
	// Served returns the resource of a kind, empty if there is none, and whether it has a scale.
	Served(kind schema.GroupKind) (resource schema.GroupResource, scales bool, err error)
	// Grants reports whether a ServiceAccount has a right.
	Grants(ctx context.Context, account types.NamespacedName, right apply.Right) (bool, error)
}

// idle returns the budgets that will protect no pod, with the remedy. The manager cannot read their workloads with the
// rights of the manifests, nor with rights that were granted to it before it comes. OpenKruise's manager may read all kinds.
func idle(ctx context.Context, stored []unstructured.Unstructured, manifests []*unstructured.Unstructured, cluster server) (lines []string, err error) {
	for _, budget := range stored {
		kind, names := budgets.Target(&budget)
		if !names {
			continue
		}
		resource, scales, err := cluster.Served(kind)
		if err != nil {
			return nil, err
		}
		reason, why := "", ""
		switch {
		case resource.Resource == "":
			reason = budgets.NotServed
			why = "the cluster does not serve kind " + kind.String()
		case mayGet(manifests, resource.Group, resource.Resource), scales && mayGet(manifests, resource.Group, resource.Resource+"/scale"):
		default:
			right := apply.Right{Resource: resource.WithVersion(""), Verbs: []string{"get", "list", "watch"}}
			granted, err := cluster.Grants(ctx, budgets.Account(), right)
			if err != nil {
				return nil, err
			}
			if !granted {
				reason = budgets.Forbidden
				why = "the operator has no permission to read kind " + kind.String()
			}
		}
		if name, help := budgets.Idle(&budget, reason); name != "" {
			lines = append(lines, fmt.Sprintf("%s will protect no pod: %s. %s", name, why, help))
		}
	}
	return lines, nil
}

// mayGet reports whether a role among the manifests lets its account get all objects of the resource, such as "jobs" or
// "jobs/scale".
func mayGet(manifests []*unstructured.Unstructured, group, resource string) bool {
	_, subresource, _ := strings.Cut(resource, "/")
	return slices.ContainsFunc(manifests, func(object *unstructured.Unstructured) bool {
		rules, _, _ := unstructured.NestedSlice(object.Object, "rules")
		return object.GetKind() == "ClusterRole" && slices.ContainsFunc(rules, func(each any) bool {
			rule, _ := each.(map[string]any)
			return rule["resourceNames"] == nil && hasOne(rule["verbs"], "get") && hasOne(rule["apiGroups"], group) &&
				(hasOne(rule["resources"], resource) || subresource != "" && hasOne(rule["resources"], "*/"+subresource))
		})
	})
}

// hasOne reports whether a list of a rule has the value, or stands for all.
func hasOne(list any, value string) bool {
	values, _ := list.([]any)
	return slices.Contains(values, any(value)) || slices.Contains(values, any("*"))
}
