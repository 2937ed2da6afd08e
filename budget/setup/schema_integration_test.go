package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// Somebody who deletes the webhook configurations while no operator runs can store no budget that protects nothing. The API
// server asks the schema before it calls the webhook.
func TestTheSchemaRefusesWithoutTheWebhook(t *testing.T) {
	env.Need(t)
	namespace, c := env.Namespace(t), env.Client(t)
	const selector, limit = "selector: {matchLabels: {app: web}}", ", maxUnavailable: 1"
	for name, test := range map[string]struct{ spec, want string }{
		"no pods":              {"maxUnavailable: 1", "spec: Required value: one of selector and targetRef is required"},
		"pods in two ways":     {selector + ", targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}" + limit, "spec: Forbidden: selector and targetRef are mutually exclusive"},
		"no limit":             {selector, "spec: Required value: one of maxUnavailable and minAvailable is required"},
		"two limits":           {selector + limit + ", minAvailable: 1", "spec: Forbidden: maxUnavailable and minAvailable are mutually exclusive"},
		"less than none":       {selector + ", maxUnavailable: -1", "spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"},
		"no percentage":        {selector + ", minAvailable: most", `spec.minAvailable: Invalid value: "most": must be a whole number or a percentage such as 30%`},
		"more than all":        {selector + ", minAvailable: 101%", `spec.minAvailable: Invalid value: "101%": must not be greater than 100%`},
		"all pods":             {"selector: {}" + limit, "must not be empty: an empty selector selects no pod"},
		"no such operator":     {"selector: {matchExpressions: [{key: app, operator: Is, values: [web]}]}" + limit, "each operator must be In or NotIn with values, or Exists or DoesNotExist without"},
		"no value":             {"selector: {matchExpressions: [{key: app, operator: In}]}" + limit, "each operator must be In or NotIn with values, or Exists or DoesNotExist without"},
		"half a target":        {"targetRef: {apiVersion: apps/v1, name: web}" + limit, "spec.targetRef: Required value: apiVersion, kind and name are required"},
		"a pod as a target":    {"targetRef: {apiVersion: v1, kind: Pod, name: web}" + limit, `spec.targetRef.kind: Invalid value: must be a workload: use selector to protect single pods`},
		"no pod to be ignored": {selector + limit + ", ignoredPodSelector: {}", "must not be empty: an empty ignoredPodSelector selects no pod"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				if version == "v1alpha1" && name == "no pod to be ignored" {
					continue // an annotation there
				}
				b := &unstructured.Unstructured{}
				require.NoError(t, yaml.Unmarshal([]byte("{apiVersion: policy.kruise.io/"+version+", kind: PodUnavailableBudget, metadata: {name: web, namespace: "+namespace+"}, spec: {"+test.spec+"}}"), &b.Object))
				err := c.Create(t.Context(), b)
				assert.True(t, apierrors.IsInvalid(err), "%s: %v", version, err)
				assert.ErrorContains(t, err, test.want, version)
			}
		})
	}
}

// The same holds for changes, and what is stored does not prevent other ones.
func TestTheSchemaKeepsWhatIsCovered(t *testing.T) {
	env.Need(t)
	answerWebhooks(t)
	c := env.Client(t)
	b := newBudget(env.Namespace(t))
	b.Spec.TargetReference, b.Spec.Selector = nil, &metav1.LabelSelector{MatchLabels: labels}
	require.NoError(t, c.Create(t.Context(), b))
	for name, change := range map[string]func(*v1beta1.PodUnavailableBudgetSpec){
		"spec.selector": func(s *v1beta1.PodUnavailableBudgetSpec) { s.Selector.MatchLabels = map[string]string{"app": "api"} },
		"spec.targetRef": func(s *v1beta1.PodUnavailableBudgetSpec) {
			s.Selector, s.TargetReference = nil, newBudget("").Spec.TargetReference
		},
	} {
		after := b.DeepCopy()
		change(&after.Spec)
		err := c.Update(t.Context(), after, client.DryRunAll)
		assert.True(t, apierrors.IsInvalid(err), "%v", err)
		require.ErrorContains(t, err, name+": Forbidden: is immutable: create another budget")
	}
	b.Spec.MaxUnavailable = new(intstr.FromString("007%"))
	b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{}
	assert.NoError(t, c.Update(t.Context(), b))
}
