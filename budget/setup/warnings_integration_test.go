package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
	"github.com/flotilla-project/flotilla/budget/internal/openkruise"
)

// What a budget probably does not mean is told when it is made.
func TestUsersAreWarned(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 3)
	c, warnings := env.Warned(t)
	target := func(apiVersion, kind, name string) func(*v1beta1.PodUnavailableBudget) {
		return func(b *v1beta1.PodUnavailableBudget) {
			b.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: apiVersion, Kind: kind, Name: name}
		}
	}
	for name, test := range map[string]struct {
		change func(*v1beta1.PodUnavailableBudget)
		want   []string
	}{
		"nothing": {func(*v1beta1.PodUnavailableBudget) {}, nil},
		"no such workload": {
			target("apps/v1", "Deployment", "api"),
			[]string{"spec.targetRef: Deployment api not found: the budget has no effect until it is created"},
		},
		"no such kind": {target("example.com/v1", "Shop", "web"), []string{"spec.targetRef: the cluster does not serve kind Shop of example.com/v1"}},
		"a namespace that no webhook is called for": {
			func(b *v1beta1.PodUnavailableBudget) {
				b.Namespace, b.Spec.TargetReference, b.Spec.Selector = "kube-system", nil, &metav1.LabelSelector{MatchLabels: labels}
			},
			[]string{"this budget has no effect: namespace kube-system is exempt (kube-system, flotilla-system, label control-plane)"},
		},
		"all may go": {
			func(b *v1beta1.PodUnavailableBudget) { b.Spec.MaxUnavailable = new(intstr.FromInt32(3)) },
			[]string{"spec.maxUnavailable: 3 of 3 replicas leaves the pods of Deployment web unprotected"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBudget(a.namespace)
			test.change(b)
			await.Until(t, func(check *assert.CollectT) { // the operator's caches show the Deployment
				warnings.Heard()
				require.NoError(check, c.Create(t.Context(), b.DeepCopy(), client.DryRunAll))
				assert.Equal(check, test.want, warnings.Heard())
			})
		})
	}
}

// OpenKruise writes the same status, and refuses by its own count.
func TestUsersAreWarnedOfOpenKruise(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 1)
	c, warnings := env.Warned(t)
	none := admissionregistrationv1.SideEffectClassNone
	require.NoError(t, a.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "kruise-validating-webhook-configuration"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "vpodunavailablebudget.kb.io", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "kruise-system", Name: "kruise-webhook-service"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"policy.kruise.io"}, APIVersions: []string{"v1alpha1"}, Resources: []string{"podunavailablebudgets"}},
			}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "nobody", Expression: "false"}}, // it does not run here
		}},
	}))
	await.Until(t, func(check *assert.CollectT) {
		warnings.Heard()
		require.NoError(check, c.Create(t.Context(), newBudget(a.namespace), client.DryRunAll))
		assert.Contains(check, warnings.Heard(), openkruise.Trouble)
	})
}

// A budget with a selector beside one with a target: what both cover shows in the pods.
func TestUsersAreWarnedOfPodsThatAreCoveredTwice(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 2)
	a.budget(t)
	c, warnings := env.Warned(t)
	other := newBudget(a.namespace)
	other.Name, other.Spec.TargetReference, other.Spec.Selector = "other", nil, &metav1.LabelSelector{MatchLabels: labels}
	await.Until(t, func(check *assert.CollectT) {
		warnings.Heard()
		require.NoError(check, c.Create(t.Context(), other.DeepCopy(), client.DryRunAll))
		assert.Equal(check, []string{"PodUnavailableBudget web also covers pod web-0: a disruption counts against both budgets and either can refuse it"}, warnings.Heard())
	})
	other.Spec.Selector.MatchLabels = map[string]string{"app": "api"}
	require.NoError(t, c.Create(t.Context(), other, client.DryRunAll))
	assert.Empty(t, warnings.Heard())
}
