package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/docs"
)

// Launch priorities belong to another webhook, which the API server calls for pods that have one. A patch gives a pod its
// priority before that.
func TestAPatchGivesAPodALaunchPriority(t *testing.T) {
	c, namespace := serve(t), env.Namespace(t)
	orderDead(t, c)
	owner, s := newReplicaSet(namespace, 3), newSpread(namespace, intstr.FromInt32(1))
	s.Spec.Subsets[0].Patch.Raw = []byte(`{"metadata":{"annotations":{"apps.kruise.io/container-launch-priority":"Ordered"}}}`)
	s.Spec.Subsets[1].Patch.Raw = []byte(`{"spec":{"containers":[{"name":"main","env":[{"name":"KRUISE_CONTAINER_PRIORITY","value":"1"}]}]}}`)
	require.NoError(t, c.Create(t.Context(), owner))
	require.NoError(t, c.Create(t.Context(), s))
	settled(t, c, s, "0/1 0/-1")
	for _, subset := range []string{"a", "b"} {
		err := c.Create(t.Context(), podOf(owner))
		require.Error(t, err, "a pod of subset %s was created without its order", subset)
		require.ErrorContains(t, err, "mpod.kb.io")
	}
}

// orderDead installs the webhook of launch priorities as it is shipped, with nobody to answer it, until the test ends.
func orderDead(t *testing.T, c client.Client) {
	t.Helper()
	hooks := &admissionregistrationv1.MutatingWebhookConfiguration{}
	require.NoError(t, yaml.Unmarshal(docs.File(t, "daemon/config/webhook/mutating.yaml"), hooks))
	for i := range hooks.Webhooks {
		hooks.Webhooks[i].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1")}
	}
	require.NoError(t, c.Create(t.Context(), hooks))
	ordered := &corev1.Pod{Spec: template().Spec}
	ordered.Namespace, ordered.GenerateName = env.Namespace(t), "ordered-"
	ordered.Annotations = map[string]string{"apps.kruise.io/container-launch-priority": "Ordered"}
	await.Until(t, func(check *assert.CollectT) { // the API server has a watch of its own for webhooks
		err := c.Create(t.Context(), ordered.DeepCopy(), client.DryRunAll)
		assert.True(check, apierrors.IsInternalError(err), "%v", err)
	})
}
