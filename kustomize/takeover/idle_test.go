package takeover

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/install"
)

// someKinds are those that a cluster serves. Somebody has granted the manager of budgets to read Bands.
type someKinds struct{}

func (someKinds) Served(kind schema.GroupKind) (schema.GroupResource, bool, error) {
	resource := map[string]string{"Rollout": "rollouts", "Job": "jobs", "Crew": "crews", "Band": "bands"}[kind.Kind]
	return schema.GroupResource{Group: kind.Group, Resource: resource}, kind.Kind == "Rollout", nil
}

func (someKinds) Grants(_ context.Context, account types.NamespacedName, right apply.Right) (bool, error) {
	return account.String() == "flotilla-system/budget-manager" && right.String() == "bands.example.com", nil
}

// OpenKruise's manager may read all kinds. Budgets that protected pods and will not are told before they change hands.
func TestPlansNameBudgetsThatWillProtectNothing(t *testing.T) {
	features, err := catalog.Select("budget")
	require.NoError(t, err)
	manifests, err := install.Manifests(features[0], install.Settings{})
	require.NoError(t, err)
	var stored []unstructured.Unstructured
	for name, target := range map[string]string{
		"scaled": "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}", "built-in": "{apiVersion: batch/v1, kind: Job, name: web}",
		"labels": "null",
	} {
		stored = append(stored, *object(t, "{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {namespace: shop, name: "+name+"}, spec: {targetRef: "+target+"}}"))
	}
	for _, target := range []string{"{apiVersion: example.com/v1, kind: Crew, name: web}", "{apiVersion: example.com/v1, kind: Band, name: web}", "{apiVersion: example.com/v1, kind: Gone, name: web}"} {
		stored = append(stored, *object(t, "{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {namespace: shop, name: web}, spec: {targetRef: "+target+"}}"))
	}
	world := World{}
	world.Idle, err = idle(t.Context(), stored, manifests, someKinds{})
	require.NoError(t, err)
	plan, err := planOf("budget", manifests, world)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"PodUnavailableBudget shop/web will protect no pod: the operator has no permission to read kind Crew.example.com. Grant ServiceAccount budget-manager the permissions get, list and watch for kind Crew, and get for its scale subresource.",
		"PodUnavailableBudget shop/web will protect no pod: the cluster does not serve kind Gone.example.com. Install the CRD of kind Gone, or correct spec.targetRef of the budget.",
	}, plan.Limits[:2])
	assert.NotContains(t, plan.Limits[2], "PodUnavailableBudget")
}
