package statefulset

import (
	"testing"

	"github.com/stretchr/testify/require"
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
	world.TurnOn(t, "statefulset-manager", "StatefulSetAutoResizePVCGate")
}
