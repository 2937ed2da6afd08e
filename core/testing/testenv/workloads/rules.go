package workloads

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

// Common returns the tests of what is true of the webhooks of any workload. Protection against deletion must be on.
func (w Webhooks) Common() map[string]func(*testing.T, client.Client) {
	return map[string]func(*testing.T, client.Client){
		"templates":     w.testTemplates,
		"sending again": w.testSendingAgain,
		"samples":       w.testSamples,
		"protection":    w.testProtection,
	}
}

// testTemplates has the cluster validate templates, with the volumes that claims provide.
func (w Webhooks) testTemplates(t *testing.T, c client.Client) {
	t.Helper()
	const mounts = "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: nginx, volumeMounts: [{name: data, mountPath: /data}]}]}}"
	cases := []Case{
		{"an empty selector", "v1beta1", "selector: {}", "empty selector is invalid for " + strings.ToLower(w.Kind)},
		{"a template that the cluster refuses", "v1alpha1", "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: Main, image: nginx}]}}", `spec.template.spec.containers[0].name: Invalid value: "Main"`},
		{"a mount of no volume", "v1beta1", mounts, `spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"`},
		{"OnDelete", "v1alpha1", "updateStrategy: {type: OnDelete}", ""},
	}
	if !w.Unscaled {
		claim := ", volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}"
		cases = append(cases, Case{"a mount of a claim", "v1beta1", "{" + mounts + claim, ""})
	}
	w.CheckAnswers(t, c, cases)
}

// testSendingAgain requires that sending an object again changes nothing: the template is stored without defaults, as
// it was sent.
func (w Webhooks) testSendingAgain(t *testing.T, c client.Client) {
	t.Helper()
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			first := Create(t, c, w.Env.Namespace(t), w.Sent(t, version, ""))
			again := w.Sent(t, version, "")
			template := testenv.Fields(t, minimal)["template"]
			assert.Equal(t, template, first.Object["spec"].(map[string]any)["template"])

			again.SetNamespace(first.GetNamespace())
			again.SetResourceVersion(first.GetResourceVersion())
			require.NoError(t, c.Update(t.Context(), again))
			assert.Equal(t, first.GetGeneration(), again.GetGeneration())
		})
	}
}

// testSamples requires that all samples are accepted.
func (w Webhooks) testSamples(t *testing.T, c client.Client) {
	t.Helper()
	namespace := w.Env.Namespace(t)
	names, err := fs.Glob(w.Config, "samples/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		for _, sample := range testenv.Manifests(t, w.Config, name) {
			Create(t, c, namespace, sample)
		}
	}
}

// testProtection requires that the deletion of a workload, or of one with replicas, is refused because of its label.
func (w Webhooks) testProtection(t *testing.T, c client.Client) {
	t.Helper()
	protection := contract.DeleteProtectionCascading
	reason := "Cascading and replicas 1>0"
	unprotected := `{"spec":{"replicas":0}}`
	if w.Unscaled {
		protection, reason = contract.DeleteProtectionAlways, "Always"
		unprotected = `{"metadata":{"labels":{"` + contract.DeleteProtectionLabel + `":"Cascading"}}}`
	}
	o := w.Sent(t, "v1beta1", "")
	o.SetLabels(map[string]string{contract.DeleteProtectionLabel: protection})
	o = Create(t, c, w.Env.Namespace(t), o)
	err := c.Delete(t.Context(), o)
	assert.True(t, apierrors.IsForbidden(err))
	require.ErrorContains(t, err, "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection="+reason)

	require.NoError(t, c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(unprotected))))
	assert.NoError(t, c.Delete(t.Context(), o))
}
