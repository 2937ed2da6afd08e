package admission

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/docs"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/workloads"
	"github.com/flotilla-project/flotilla/daemonset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/config"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		CRDs:     []string{"../../config/crd/daemonsets.yaml"},
		Webhooks: envtest.WebhookInstallOptions{Paths: []string{"../../config/webhook"}},
		Scheme:   testenv.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme),
	})
}

var webhooks = workloads.Webhooks{Env: &env, Kind: "DaemonSet", Resource: "daemonsets", Unscaled: true, Config: config.Files}

// serve answers the webhooks of the shipped configurations until the test ends.
func serve(t *testing.T) client.Client {
	t.Helper()
	return webhooks.Serve(t, func(operator client.Client) manager.Webhook {
		return NewWebhook(Rules{
			Templates: podtemplate.Validator{Cluster: podtemplate.New(operator, clock.RealClock{})}, Nodes: operator,
			FeatureGates: FeatureGates{DeletionProtection: true, Forecast: true},
		})
	})
}

// sent is a DaemonSet as a user writes it in a version: a minimal one with more members of the spec.
func sent(t *testing.T, version, members string) *unstructured.Unstructured {
	t.Helper()
	return webhooks.Sent(t, version, members)
}

func stored(t *testing.T, c client.Client, set client.Object) *v1beta1.DaemonSet {
	t.Helper()
	return workloads.Stored[v1beta1.DaemonSet](t, c, set)
}

func TestWebhooks(t *testing.T) {
	c := serve(t)
	tests := webhooks.Common()
	maps.Copy(tests, map[string]func(*testing.T, client.Client){
		"defaults": testDefaults, "validation": testValidation, "updates": testUpdates, "conversion": testConversion, "forecasts": testForecasts,
		"surging": testSurging, "warnings": testWarnings, "examples": testExamples,
	})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

func TestDeadOperator(t *testing.T) { webhooks.TestDeadOperator(t, serve) }

func testDefaults(t *testing.T, c client.Client) {
	t.Helper()
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			set := workloads.Create(t, c, env.Namespace(t), sent(t, version, ""))
			want := v1beta1.DaemonSet{}
			Default(&want)
			got := stored(t, c, set)
			want.Spec.Selector, want.Spec.Template = got.Spec.Selector, got.Spec.Template
			assert.Equal(t, want.Spec, got.Spec, "whatever the version")
			assert.Empty(t, got.Annotations)
		})
	}
}

func testValidation(t *testing.T, c client.Client) {
	t.Helper()
	const update = "spec.updateStrategy.rollingUpdate."
	webhooks.CheckAnswers(t, c, []workloads.Case{
		{"both limits", "v1beta1", "updateStrategy: {rollingUpdate: {maxUnavailable: 1, maxSurge: 1}}", update + "maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"},
		{"no limit", "v1alpha1", "updateStrategy: {rollingUpdate: {maxUnavailable: 0}}", update + "maxUnavailable: Required value: cannot be 0 when maxSurge is 0"},
		{"in place with a surge", "v1beta1", "updateStrategy: {rollingUpdate: {rollingUpdateType: InPlaceIfPossible, maxSurge: 1}}", update + "maxSurge: Required value: must be 0 for InPlaceIfPossible type"},
		{"Surging in v1beta1", "v1beta1", "updateStrategy: {rollingUpdate: {rollingUpdateType: Surging}}", update + `rollingUpdateType: Unsupported value: "Surging"`},
		{"Surging in v1alpha1", "v1alpha1", "updateStrategy: {rollingUpdate: {rollingUpdateType: Surging}}", ""},
		{"Surging with pods taken away", "v1alpha1", "updateStrategy: {rollingUpdate: {rollingUpdateType: Surging, maxUnavailable: 1}}", update + "maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"},
		{"an unknown strategy", "v1beta1", "updateStrategy: {type: Recreate}", `spec.updateStrategy: Unsupported value: "Recreate": supported values: "RollingUpdate", "OnDelete"`},
		{"restartPolicy", "v1beta1", "template: {metadata: {labels: {app: web}}, spec: {restartPolicy: Never, containers: [{name: main, image: nginx}]}}", "spec.template.spec.restartPolicy: Unsupported value"},
		{"a hook that is not supported", "v1alpha1", "lifecycle: {inPlaceUpdate: {labelsHandler: {a: b}}}", "spec.lifecycle.inPlaceUpdate: Forbidden"},
		{"a partition", "v1alpha1", "updateStrategy: {rollingUpdate: {partition: 50%}}", ""},
	})
}

func testUpdates(t *testing.T, c client.Client) {
	t.Helper()
	set := workloads.Create(t, c, env.Namespace(t), sent(t, "v1beta1", ""))
	require.ErrorContains(t, workloads.Changing(t, c, set, func(s *v1beta1.DaemonSet) {
		s.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}
	}), "spec: Forbidden: updates to daemonset spec for fields other than")
	assert.NoError(t, workloads.Changing(t, c, set, func(s *v1beta1.DaemonSet) {
		s.Spec.Template.Spec.NodeSelector = map[string]string{"color": "blue"}
		s.Spec.ScaleStrategy = &v1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}
	}))
}

func testConversion(t *testing.T, c client.Client) {
	t.Helper()
	set := workloads.Create(t, c, env.Namespace(t), sent(t, "v1beta1", "{scaleStrategy: {partitionedScaling: true}, updateStrategy: {rollingUpdate: {partition: 10%, unreadyNodePolicy: Skip}}}"))
	hub := stored(t, c, set)

	var spoke v1alpha1.DaemonSet
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), &spoke))
	assert.Equal(t, map[string]string{v1beta1.ProgressiveCreatePodAnnotation: "true"}, spoke.Annotations)
	spoke.Spec.MinReadySeconds = 3
	require.NoError(t, c.Update(t.Context(), &spoke))
	hub.Spec.MinReadySeconds = 3
	assert.Equal(t, hub.Spec, stored(t, c, set).Spec)
	assert.Empty(t, stored(t, c, set).Annotations)

	require.NoError(t, workloads.Changing(t, c, set, func(s *v1beta1.DaemonSet) { s.Spec.ScaleStrategy = nil }))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), &spoke))
	assert.Empty(t, spoke.Annotations)
}

func testSurging(t *testing.T, c client.Client) {
	t.Helper()
	set := workloads.Create(t, c, env.Namespace(t), sent(t, "v1alpha1", "updateStrategy: {rollingUpdate: {rollingUpdateType: Surging}}"))
	got := stored(t, c, set).Spec.UpdateStrategy.RollingUpdate
	assert.Equal(t, &strategy{RollingUpdateType: v1beta1.StandardRollingUpdateType, MaxSurge: number(1), MaxUnavailable: number(0)}, got)
}

func testWarnings(t *testing.T, _ client.Client) {
	t.Helper()
	c, warnings := env.Warned(t)
	workloads.Create(t, c, env.Namespace(t), sent(t, "v1beta1", "scaleStrategy: {partitionedScaling: true}"))
	assert.Contains(t, warnings.Heard(), "spec.scaleStrategy.partitionedScaling only has an effect with spec.updateStrategy.rollingUpdate.partition")
}

// testExamples applies every example of the feature's page as kubectl does, with strict validation.
func testExamples(t *testing.T, _ client.Client) {
	t.Helper()
	c, warnings := env.Warned(t)
	namespace := env.Namespace(t)
	for _, example := range docs.Feature(t, "daemonset").Examples() {
		set := &unstructured.Unstructured{Object: testenv.Fields(t, example.YAML)}
		set.SetNamespace(namespace)
		if example.Patches == "" {
			require.NoError(t, c.Create(t.Context(), set, client.FieldValidation(metav1.FieldValidationStrict)), example.YAML)
			continue
		}
		patch, err := json.Marshal(testenv.Fields(t, example.YAML))
		require.NoError(t, err)
		set.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(v1beta1.Kind))
		set.SetName(example.Patches)
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		before := set.GetGeneration()
		require.NoError(t, c.Patch(t.Context(), set, client.RawPatch(types.MergePatchType, patch), client.FieldValidation(metav1.FieldValidationStrict)), example.YAML)
		assert.Greater(t, set.GetGeneration(), before, "no change: %s", example.YAML)
	}
	assert.Empty(t, warnings.Heard())
}

// An edit that is only tried is answered, too: pipelines ask before they apply.
func testForecasts(t *testing.T, _ client.Client) {
	t.Helper()
	c, warnings := env.Warned(t)
	set := workloads.Create(t, c, env.Namespace(t), sent(t, "v1beta1", ""))
	counted := stored(t, c, set)
	counted.Status.DesiredNumberScheduled = 3
	require.NoError(t, c.Status().Update(t.Context(), counted))
	warnings.Heard()
	try := func() {
		require.NoError(t, workloads.Changing(t, client.NewDryRunClient(c), set, func(s *v1beta1.DaemonSet) { s.Spec.Template.Spec.Containers[0].Image = "app:next" }))
	}
	try()
	assert.Empty(t, warnings.Heard(), "no node has a pod yet")
	counted.Status.CurrentNumberScheduled, counted.Status.UpdatedNumberScheduled = 3, 3
	require.NoError(t, c.Status().Update(t.Context(), counted))
	try()
	assert.Equal(t, []string{"3 of 3 pods will be recreated, at most 1 at a time: rollingUpdateType is Standard"}, warnings.Heard())
	require.NoError(t, workloads.Changing(t, c, set, func(s *v1beta1.DaemonSet) { s.Spec.MinReadySeconds = 3 }))
	assert.Empty(t, warnings.Heard())
}
