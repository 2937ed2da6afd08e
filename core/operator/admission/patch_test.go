package admission

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gomodules.xyz/jsonpatch/v2"
)

// randomValue makes small trees whose keys need escaping now and then.
func randomValue(random *rand.Rand, depth int) any {
	switch choice := random.IntN(5); {
	case depth > 0 && choice == 0:
		list := make([]any, random.IntN(3))
		for i := range list {
			list[i] = randomValue(random, depth-1)
		}
		return list
	case depth > 0 && choice < 3:
		return randomObject(random, depth)
	default:
		return "v" + strconv.Itoa(random.IntN(3))
	}
}

func randomObject(random *rand.Rand, depth int) map[string]any {
	keys := []string{"a", "b", "c/d", "e~f", "~1"}
	object := map[string]any{}
	for range random.IntN(4) {
		object[keys[random.IntN(len(keys))]] = randomValue(random, depth-1)
	}
	return object
}

func operationsOf(t *testing.T, document, before, after any) []jsonpatch.Operation {
	t.Helper()
	var raw [3][]byte
	for i, value := range []any{document, before, after} {
		encoded, err := json.Marshal(value)
		require.NoError(t, err)
		raw[i] = encoded
	}
	operations, err := newPatch(raw[0], raw[1], raw[2])
	require.NoError(t, err)
	return operations
}

func apply(t *testing.T, document, before, after any) any {
	t.Helper()
	operations, err := json.Marshal(operationsOf(t, document, before, after))
	require.NoError(t, err)
	raw, err := json.Marshal(document)
	require.NoError(t, err)
	patch, err := evanphx.DecodePatch(operations)
	require.NoError(t, err)
	result, err := patch.Apply(raw)
	require.NoError(t, err, "%s on %s", operations, raw)
	var out any
	require.NoError(t, json.Unmarshal(result, &out))
	return out
}

func TestTransplantMakesTheWholeChange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		before, after := randomObject(random, 3), randomObject(random, 3)
		require.Equal(t, any(after), apply(t, before, before, after), "from %v to %v", before, after)
		require.Empty(t, operationsOf(t, after, before, before), "what does not change is left alone")
	}
}

func TestTransplantKeepsWhatOnlyTheDocumentHas(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		before, after := randomObject(random, 3), randomObject(random, 3)
		document := map[string]any{"unknown": map[string]any{"deep": "x"}}
		maps.Copy(document, before)
		result := apply(t, document, before, after).(map[string]any)
		assert.Equal(t, document["unknown"], result["unknown"])
		delete(result, "unknown")
		require.Equal(t, after, result)
	}
}
