package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/featuregates"
)

// An operator that is installed before its CRDs waits for them and then works, without a restart.
func TestOperatorWaitsForItsCRDs(t *testing.T) {
	c := serve(t, features.Defaults(featuregates.All()...))
	node := givenReadyNode(t, c, "node-1")
	operators.StartBefore(t, &env, Operator(), "../config/crd")
	await.Until(t, func(check *assert.CollectT) {
		assert.NoError(check, c.Get(t.Context(), client.ObjectKey{Name: node.Name}, &v1beta1.NodeImage{}))
	})
	require.NoError(t, c.Delete(t.Context(), node))
	await.Until(t, func(check *assert.CollectT) {
		err := c.Get(t.Context(), client.ObjectKey{Name: node.Name}, &v1beta1.NodeImage{})
		assert.True(check, apierrors.IsNotFound(err), "it goes with its node")
	})
}
