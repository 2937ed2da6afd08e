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

// growingClaimsRole is the role that the operator also needs if updates expand claims.
const growingClaimsRole = "../../../statefulset/config/resize/role.yaml"

// givenGrowingClaims turns on the feature gate with which updates expand claims, for the rest of the run, and grants
// the role that it needs, as an administrator does. The operator restarts, so only stories that do not run in parallel
// with others may call it.
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
