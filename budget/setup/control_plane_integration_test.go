package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/core/operator/features"

	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

// Node lifecycle, the collection of pods and the scheduler are refused like everybody, unless component systemdeletions exempts
// them.
func TestTheControlPlaneCanBeExempted(t *testing.T) {
	callers := []string{
		"system:serviceaccount:kube-system:node-controller", "system:serviceaccount:kube-system:pod-garbage-collector", "system:kube-scheduler",
	}
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), len(callers)+1)
	a.budget(t)
	require.NoError(t, a.evict(t, a.pods[len(callers)]), "the room of the budget is used up")
	remove := func(user string, pod int, options ...client.DeleteOption) error {
		config := env.ConfigAs(t, "test")
		config.Impersonate.UserName = user
		c, err := client.New(config, client.Options{Scheme: a.Scheme()})
		require.NoError(t, err)
		return c.Delete(t.Context(), a.pods[pod].DeepCopy(), options...)
	}
	for i, user := range callers {
		require.ErrorContains(t, remove(user, i), "refuses DELETE of pod "+a.pods[i].Name, user)
	}

	exempt(t, a.Client)
	for i, user := range callers {
		await.Until(t, func(check *assert.CollectT) { // the API server has a watch of its own for webhooks
			assert.NoError(check, remove(user, i, client.DryRunAll))
		})
		require.ErrorContains(t, remove("system:serviceaccount:kube-system:replicaset-controller", i), "refuses DELETE")
		require.ErrorContains(t, a.Delete(t.Context(), a.pods[i].DeepCopy()), "refuses DELETE")
		require.NoError(t, remove(user, i), user)
	}
}

// exempt patches the webhook configuration as component systemdeletions does, until the test ends.
func exempt(t *testing.T, c client.Client) {
	t.Helper()
	text, err := os.ReadFile("../config/systemdeletions/kustomization.yaml")
	require.NoError(t, err)
	var component struct {
		Patches []struct {
			Target struct{ Name string }
			Patch  string
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &component))
	require.Len(t, component.Patches, 1)
	operations, err := yaml.YAMLToJSON([]byte(component.Patches[0].Patch))
	require.NoError(t, err)

	hooks := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: component.Patches[0].Target.Name}, hooks))
	before, err := json.Marshal(hooks.Webhooks[1].MatchConditions)
	require.NoError(t, err)
	require.NoError(t, c.Patch(t.Context(), hooks, client.RawPatch(types.JSONPatchType, operations)))
	t.Cleanup(func() {
		undo := fmt.Appendf(nil, `[{"op":"replace","path":"/webhooks/1/matchConditions","value":%s}]`, before)
		assert.NoError(t, c.Patch(context.WithoutCancel(t.Context()), hooks, client.RawPatch(types.JSONPatchType, undo)))
	})
}
