package statefulset

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// growingClaimsRole is what the operator may do besides where claims grow with updates.
const growingClaimsRole = "../../../statefulset/config/resize/role.yaml"

// givenGrowingClaims turns the feature gate on that lets claims grow with updates, for the rest of the run and as an
// administrator would, with the permission that it needs. The operator restarts: only stories that do not run beside
// others may ask for it.
func givenGrowingClaims(t *testing.T) {
	t.Helper()
	out, err := world.Kubectl(t, "", "apply", "-f", growingClaimsRole)
	require.NoError(t, err, out)
	operator := &appsv1.Deployment{}
	require.NoError(t, world.Client.Get(t.Context(), client.ObjectKey{Namespace: "flotilla-system", Name: "statefulset-manager"}, operator))
	const argument = "--feature-gates=StatefulSetAutoResizePVCGate=true"
	args := operator.Spec.Template.Spec.Containers[0].Args
	if slices.Contains(args, argument) {
		return
	}
	patch, err := json.Marshal([]map[string]any{{
		"op": "add", "path": "/spec/template/spec/containers/0/args", "value": append(slices.Clone(args), argument),
	}})
	require.NoError(t, err)
	require.NoError(t, world.Client.Patch(t.Context(), operator, client.RawPatch(types.JSONPatchType, patch)))
	out, err = world.Kubectl(t, "", "-n", operator.Namespace, "rollout", "status", "deployment/"+operator.Name, "--timeout=120s")
	require.NoError(t, err, out)
}
