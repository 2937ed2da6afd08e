package takeover

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/budgets"
)

// budgetCRD is the definition of budgets.
const budgetCRD = "podunavailablebudgets.policy.kruise.io"

// idle tells of the budgets that will protect no pod, because the manager with the rights of the manifests cannot read their
// workloads, and what helps. OpenKruise's manager may read all kinds. Served says what the cluster has of a kind.
func idle(stored []unstructured.Unstructured, manifests []*unstructured.Unstructured, served func(schema.GroupKind) (schema.GroupResource, bool, error)) (lines []string, err error) {
	for _, budget := range stored {
		kind, names := budgets.Target(&budget)
		if !names {
			continue
		}
		resource, scales, err := served(kind)
		if err != nil {
			return nil, err
		}
		reason, why := "", ""
		switch {
		case resource.Resource == "":
			reason, why = budgets.NotServed, "the cluster does not serve kind "+kind.String()
		case mayGet(manifests, resource.Group, resource.Resource), scales && mayGet(manifests, resource.Group, resource.Resource+"/scale"):
		default:
			reason, why = budgets.Forbidden, "no role of the manifests lets the manager read kind "+kind.String()
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
