package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/budget/config"
)

// The manager may patch all pods and namespaces, and the policies let it write its marks alone.
func TestTheManagerWritesItsMarksAlone(t *testing.T) {
	env.Need(t)
	a := givenApp(t, env.Client(t), 1)
	env.Share(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "flotilla-system"}})
	env.Install(t, config.Files, "rbac/*.yaml", "policy/*.yaml")
	account := env.ConfigAs(t, "test")
	account.Impersonate.UserName = "system:serviceaccount:flotilla-system:budget-manager"
	manager, err := client.New(account, client.Options{Scheme: env.Scheme})
	require.NoError(t, err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}
	patch := func(o client.Object, patch string, options ...client.PatchOption) error {
		body := client.RawPatch("application/strategic-merge-patch+json", []byte(patch))
		return manager.Patch(t.Context(), o.DeepCopyObject().(client.Object), body, options...)
	}
	for _, foreign := range []struct {
		object client.Object
		patch  string
	}{
		{a.pods[0], newImage},
		{a.pods[0], `{"metadata":{"labels":{"app":"other"}}}`},
		{a.pods[0], `{"metadata":{"annotations":{"pub.kruise.io/no-protect":"true"}}}`},
		{a.pods[0], `{"metadata":{"finalizers":["example.com/stay"]}}`},
		{ns, `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`},
		{ns, `{"metadata":{"annotations":{"example.com/any":"thing"}}}`},
	} {
		await.Until(t, func(check *assert.CollectT) { // the API server has a watch of its own for policies
			err := patch(foreign.object, foreign.patch, client.DryRunAll)
			assert.True(check, apierrors.IsInvalid(err) || apierrors.IsForbidden(err), "%v", err)
			assert.ErrorContains(check, err, "the manager may")
		}, foreign.patch)
	}
	const web, none = `"web"`, "null"
	for _, value := range []string{web, none} {
		require.NoError(t, patch(a.pods[0], `{"metadata":{"annotations":{"pub.kruise.io/related-pub":`+value+`,"kruise.io/related-pub":`+value+`}}}`))
	}
	for _, value := range []string{web, none} {
		require.NoError(t, patch(ns, `{"metadata":{"labels":{"policy.kruise.io/pod-unavailable-budget":`+value+`},
			"annotations":{"policy.kruise.io/pod-unavailable-budget-admitted":`+value+`}}}`))
	}
}
