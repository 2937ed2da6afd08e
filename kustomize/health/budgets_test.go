package health

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A budget that cannot read its workload refuses nothing, which nobody sees.
func TestTheDoctorFindsBudgetsThatProtectNothing(t *testing.T) {
	budget := func(name, reason, status string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "shop", "name": name},
			"spec":     map[string]any{"targetRef": map[string]any{"kind": "Crew"}},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": "ReplicasUnknown", "status": status, "reason": reason, "message": "the budget has no effect",
			}}},
		}}
	}
	found := unreadable([]unstructured.Unstructured{
		budget("a", "Forbidden", "True"), budget("b", "NotServed", "True"), budget("c", "NoScale", "True"), budget("d", "Forbidden", "False"), {},
	})
	assert.Equal(t, []Finding{
		{About: "budget", Trouble: "PodUnavailableBudget shop/a: the budget has no effect", Help: "Grant ServiceAccount budget-manager the permissions get, list and watch for kind Crew, and get for its scale subresource."},
		{About: "budget", Trouble: "PodUnavailableBudget shop/b: the budget has no effect", Help: "Install the CRD of kind Crew, or correct spec.targetRef of the budget."},
	}, found)
}
