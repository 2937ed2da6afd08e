package story

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/install"
)

// TurnOn turns on a feature gate of a manager for the rest of the suite: the next one installs its features anew. It waits
// until nobody answers without the gate: a pod that ends answers webhooks for some seconds more. The manager restarts, so
// only stories that do not run in parallel with others may call it.
func (w World) TurnOn(t *testing.T, manager, gate string) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKey{Namespace: install.Namespace, Name: manager}, deployment))
	argument := "--feature-gates=" + gate + "=true"
	args := deployment.Spec.Template.Spec.Containers[0].Args
	if slices.Contains(args, argument) {
		return
	}
	patch, err := json.Marshal([]map[string]any{{
		"op":    "add",
		"path":  "/spec/template/spec/containers/0/args",
		"value": append(slices.Clone(args), argument),
	}})
	require.NoError(t, err)
	require.NoError(t, w.Client.Patch(t.Context(), deployment, client.RawPatch(types.JSONPatchType, patch)))
	out, err := w.Kubectl(t, "", "-n", install.Namespace, "rollout", "status", "deployment/"+manager, "--timeout=120s")
	require.NoError(t, err, out)
	Eventually(t, "the end of pods of "+manager+" without "+gate, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		err := w.Client.List(ctx, pods, client.InNamespace(install.Namespace), client.MatchingLabels{"app.kubernetes.io/name": manager})
		without := slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return !slices.Contains(pod.Spec.Containers[0].Args, argument) })
		return Want(err == nil && !without, "there is one (%v)", err)
	})
}
