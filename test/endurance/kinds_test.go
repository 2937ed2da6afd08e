package endurance

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEachKindHasItsObjects(t *testing.T) {
	files, err := manifests.ReadDir("objects")
	require.NoError(t, err)
	assert.Len(t, files, len(Kinds()))
	random := rand.New(rand.NewPCG(1, 1))
	for _, k := range Kinds() {
		objects, err := k.objects()
		require.NoError(t, err)
		assert.Greater(t, len(objects), k.main, k.Name)
		assert.False(t, k.done(objects[k.main]), "%s is done before it has begun", k.Name)
		for _, edit := range k.edits {
			assert.True(t, json.Valid([]byte(edit(random))), "%s: %s", k.Name, edit(random))
		}
	}
}

func TestTheEndOfTheWorkIsInTheStatus(t *testing.T) {
	given := func(spec, status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"generation": int64(2)},
			"spec":     spec,
			"status":   status,
		}}
	}
	ready := func(status string, observed int64) map[string]any {
		return map[string]any{"observedGeneration": observed, "conditions": []any{
			map[string]any{"type": "Other", "status": "False"},
			map[string]any{"type": "Ready", "status": status},
		}}
	}
	deployment := func(updated, available int64) map[string]any {
		return map[string]any{"observedGeneration": int64(2), "replicas": int64(3), "updatedReplicas": updated, "availableReplicas": available}
	}
	three := map[string]any{"replicas": int64(3)}
	assert.True(t, isReady(given(nil, ready("True", 2))))
	assert.False(t, isReady(given(nil, ready("False", 2))))
	assert.False(t, isReady(given(nil, ready("True", 1))))
	assert.True(t, isAvailable(given(three, deployment(3, 3))))
	assert.False(t, isAvailable(given(three, deployment(2, 3))))
	assert.False(t, isAvailable(given(three, deployment(3, 2))))
	assert.True(t, has("completionTime")(given(nil, map[string]any{"completionTime": "2026-01-01T00:00:00Z"})))
	assert.True(t, hasSucceeded(given(nil, map[string]any{"phase": "Succeeded"})))
}
