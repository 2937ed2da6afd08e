package setup

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/docs"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/spread/config"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
)

// Every example of the page, and the sample, is accepted as it stands and without a warning. The ConfigMap of the page
// allows the kinds that it names.
func TestExamplesAreAccepted(t *testing.T) {
	serve(t)
	c, warnings := env.Warned(t)
	accepted := func(object *unstructured.Unstructured, namespace string) {
		object.SetNamespace(namespace)
		require.NoError(t, c.Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict)), object.GetName())
		assert.Empty(t, warnings.Heard(), object.GetName())
	}
	namespace, maps := env.Namespace(t), 0
	examples := docs.Feature(t, "workloadspread").Examples()
	require.Len(t, examples, 3)
	for _, example := range examples {
		object := &unstructured.Unstructured{Object: testenv.Fields(t, example.YAML)}
		accepted(object, namespace)
		if object.GetKind() != "ConfigMap" {
			continue
		}
		maps++
		assert.Equal(t, workloads.ConfigMapName, object.GetName())
		text, _, err := unstructured.NestedString(object.Object, "data", workloads.ConfigMapKey)
		require.NoError(t, err)
		allowed, err := workloads.ParseAllowed(text)
		require.NoError(t, err)
		assert.True(t, slices.ContainsFunc(allowed, func(a workloads.Allowed) bool {
			return a.GroupKind() == schema.GroupKind{Group: "example.io", Kind: "GameServerSet"}
		}))
	}
	assert.Equal(t, 1, maps)
	for _, object := range testenv.Manifests(t, config.Files, "samples/web.yaml") {
		accepted(object, env.Namespace(t))
	}
}
