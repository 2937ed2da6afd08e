package testenv

import (
	"encoding/json"
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

// Fields returns an object, or a part of one, that is written in YAML, decoded as clients decode JSON: whole numbers
// are integers.
func Fields(t testing.TB, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	fields := map[string]any{}
	require.NoError(t, utiljson.Unmarshal(raw, &fields))
	return fields
}

// ConvertHere makes the API server convert the objects of a CRD by the webhook server of the environment, at path
// /convert, which a manager must already serve. The probe is an object in a version that is not stored. A server that
// has not noticed yet takes it, too, without what that version lacks: so it is first told of a path that nobody serves,
// and has noticed when it refuses the probe.
func (e *Environment) ConvertHere(t testing.TB, crd string, probe client.Object) {
	t.Helper()
	c := e.Client(t)
	create := func() error {
		return c.Create(t.Context(), probe.DeepCopyObject().(client.Object), client.DryRunAll)
	}
	e.convertAt(t, c, crd, "/nowhere")
	await.Until(t, func(check *assert.CollectT) {
		assert.ErrorContains(check, create(), "conversion webhook")
	}, "the API server does not notice that conversion is a matter of a webhook")
	e.convertAt(t, c, crd, "/convert")
	await.Until(t, func(check *assert.CollectT) {
		assert.NoError(check, create())
	}, "the API server does not notice the conversion webhook")
}

// convertAt makes a path of the webhook server the conversion webhook of a CRD.
func (e *Environment) convertAt(t testing.TB, c client.Client, crd, path string) {
	t.Helper()
	hooks := e.envtest.WebhookInstallOptions
	address := net.JoinHostPort(hooks.LocalServingHost, strconv.Itoa(hooks.LocalServingPort))
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"clientConfig":             map[string]any{"service": nil, "url": "https://" + address + path, "caBundle": hooks.LocalServingCAData},
			"conversionReviewVersions": []string{"v1"},
		},
	}}})
	require.NoError(t, err)
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName(crd)
	require.NoError(t, c.Patch(t.Context(), definition, client.RawPatch(types.MergePatchType, patch)))
}
