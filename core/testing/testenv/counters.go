package testenv

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CountAtZero creates the object with a status that lacks the counters, as other operators may write it, and requires
// that the server returns the counters as 0: clients read an absent counter as unknown.
func CountAtZero(t *testing.T, c client.Client, o *unstructured.Unstructured, counters ...string) {
	t.Helper()
	require.NoError(t, c.Create(t.Context(), o))
	require.NoError(t, c.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"status":{"conditions":[]}}`))))
	status, _, err := unstructured.NestedMap(o.Object, "status")
	require.NoError(t, err)
	for _, name := range counters {
		assert.Equal(t, int64(0), status[name], name)
	}
}
