package admission

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	coreconversion "github.com/flotilla-project/flotilla/core/operator/conversion"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/workloads"
	"github.com/flotilla-project/flotilla/statefulset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/config"
	"github.com/flotilla-project/flotilla/statefulset/internal/conversion"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		CRDs:     []string{"../../config/crd/statefulsets.yaml"},
		Webhooks: envtest.WebhookInstallOptions{Paths: []string{"../../config/webhook"}},
		Scheme:   testenv.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme),
	})
}

var webhooks = workloads.Webhooks{Env: &env, Kind: "StatefulSet", Resource: "statefulsets", Config: config.Files}

// serve answers the webhooks of the shipped configurations until the test ends.
func serve(t *testing.T) client.Client {
	t.Helper()
	return webhooks.Serve(t, func(operator client.Client) manager.Webhook {
		return NewWebhook(Reader{
			Templates:    podtemplate.Validator{Cluster: podtemplate.New(operator, clock.RealClock{})},
			Classes:      operator,
			FeatureGates: FeatureGates{AutoDeletePVC: true, AutoResizePVC: true, DeletionProtection: true, Forecast: true},
		})
	})
}

// sent is a StatefulSet as a user writes it in a version: a minimal one with more members of the spec.
func sent(t *testing.T, version, members string) *unstructured.Unstructured {
	t.Helper()
	return webhooks.Sent(t, version, members)
}

func stored(t *testing.T, c client.Client, set client.Object) *v1beta1.StatefulSet {
	t.Helper()
	return workloads.Stored[v1beta1.StatefulSet](t, c, set)
}

// changing changes the stored set through v1beta1.
func changing(t *testing.T, c client.Client, set client.Object, change func(*v1beta1.StatefulSet)) error {
	t.Helper()
	return workloads.Changing(t, c, set, change)
}

func TestWebhooks(t *testing.T) {
	c := serve(t)
	tests := webhooks.Common()
	maps.Copy(tests, map[string]func(*testing.T, client.Client){
		"defaults": testDefaults, "validation": testValidation, "updates": testUpdates, "claims": testClaims,
		"conversion": testConversion, "forecasts": testForecasts, "careless clients": testCarelessClients, "annotation": testAnnotation,
		"warnings": testWarnings,
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
			want := v1beta1.StatefulSet{}
			Default(&want, FeatureGates{AutoDeletePVC: true, AutoResizePVC: true})
			got := stored(t, c, set)
			want.Spec.Selector, want.Spec.Template = got.Spec.Selector, got.Spec.Template
			assert.Equal(t, want.Spec, got.Spec, "whatever the version")
			assert.Empty(t, got.Annotations)
		})
	}
}

func testValidation(t *testing.T, c client.Client) {
	t.Helper()
	webhooks.CheckAnswers(t, c, []workloads.Case{
		{"an invalid range", "v1beta1", "reserveOrdinals: [1, 3-1]", `spec.reserveOrdinals[1]: Invalid value: "3-1"`},
		{"OnDelete beside rollingUpdate", "v1alpha1", "updateStrategy: {type: OnDelete, rollingUpdate: {partition: 1}}", "only allowed for updateStrategy 'RollingUpdate'"},
		{"faster updates of an ordered set", "v1beta1", "updateStrategy: {rollingUpdate: {maxUnavailable: 50%}}", ""},
		{"faster creation of an ordered set", "v1beta1", "scaleStrategy: {maxUnavailable: 2}", "spec.scaleStrategy.maxUnavailable: Invalid value: 2: can only work with Parallel PodManagementPolicyType"},
		{"no share", "v1beta1", "updateStrategy: {rollingUpdate: {maxUnavailable: 00%}}", `spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "00%": should not be less than 1`},
		{"no readiness gate", "v1alpha1", "updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}", "spec.template.spec.readinessGates: Invalid value: null: must contain InPlaceUpdateReady when podUpdatePolicy is InPlaceOnly"},
		{"the alias beside another value", "v1beta1", "{minReadySeconds: 9, updateStrategy: {rollingUpdate: {minReadySeconds: 8}}}", "spec.minReadySeconds: Invalid value: 9: must be the same as"},
	})
}

func testUpdates(t *testing.T, c client.Client) {
	t.Helper()
	set := sent(t, "v1beta1", "updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}")
	require.NoError(t, unstructured.SetNestedSlice(set.Object, []any{map[string]any{"conditionType": "InPlaceUpdateReady"}}, "spec", "template", "spec", "readinessGates"))
	workloads.Create(t, c, env.Namespace(t), set)
	require.ErrorContains(t, changing(t, c, set, func(s *v1beta1.StatefulSet) { s.Spec.ServiceName = "other" }),
		"are forbidden, but 'serviceName' changed")
	require.ErrorContains(t, changing(t, c, set, func(s *v1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Command = []string{"run"} }),
		"spec: Forbidden: only allowed to update images in spec for InPlaceOnly, but found add /containers/0/command")
	assert.NoError(t, changing(t, c, set, func(s *v1beta1.StatefulSet) {
		s.Spec.Template.Spec.Containers[0].Image = "nginx:2"
		s.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst
	}), "an image, and a default of the cluster written out")
}

func testClaims(t *testing.T, c client.Client) {
	t.Helper()
	class := func(name string, expandable *bool, annotations map[string]string) {
		class := &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Provisioner: "none.example.com", AllowVolumeExpansion: expandable,
		}
		require.NoError(t, c.Create(t.Context(), class))
		t.Cleanup(func() { _ = c.Delete(t.Context(), class) })
	}
	class("fast", new(true), nil)
	class("silent", nil, nil)
	set := workloads.Create(t, c, env.Namespace(t), sent(t, "v1beta1", `
volumeClaimUpdateStrategy: {type: OnPodRollingUpdate}
volumeClaimTemplates:
- {metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}}
- {metadata: {name: b}, spec: {accessModes: [ReadWriteOnce], storageClassName: silent, resources: {requests: {storage: 1Gi}}}}
- {metadata: {name: c}, spec: {accessModes: [ReadWriteOnce], storageClassName: absent, resources: {requests: {storage: 1Gi}}}}
- {metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`))
	grow := func(i int) error {
		return changing(t, c, set, func(s *v1beta1.StatefulSet) { resized(&s.Spec.VolumeClaimTemplates[i], "2Gi") })
	}
	require.NoError(t, grow(0))
	require.ErrorContains(t, grow(1), "spec.volumeClaimTemplates[b].spec.resources.requests.storage: Forbidden: storage class silent does not support volume expansion")
	require.ErrorContains(t, grow(2), `spec.volumeClaimTemplates[c].spec.storageClassName: Invalid value: "absent": cannot get the StorageClass: storageclasses.storage.k8s.io "absent" not found`)
	class("standard", new(false), map[string]string{defaultClassAnnotation: "true"})
	require.ErrorContains(t, grow(3), "storage class standard does not support volume expansion", "the default class")
}

func testConversion(t *testing.T, c client.Client) {
	t.Helper()
	set := workloads.Create(t, c, env.Namespace(t), sent(t, "v1beta1", "{reserveOrdinals: [1, 3-5], ordinals: {start: 2}, lifecycle: {preDelete: {labelsHandler: {drain: \"true\"}}}}"))
	hub := stored(t, c, set)

	var spoke v1alpha1.StatefulSet
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), &spoke))
	spoke.Spec.Replicas = new(int32(3))
	require.NoError(t, c.Update(t.Context(), &spoke))

	hub.Spec.Replicas = new(int32(3))
	assert.Equal(t, hub.Spec, stored(t, c, set).Spec)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"revisionHistoryLimit":3}}`))
	require.NoError(t, c.Patch(t.Context(), &spoke, patch))
	hub.Spec.RevisionHistoryLimit = new(int32(3))
	assert.Equal(t, hub.Spec, stored(t, c, set).Spec)
}

func testCarelessClients(t *testing.T, c client.Client) {
	t.Helper()
	set := workloads.Create(t, c, env.Namespace(t), sent(t, "v1beta1", "reserveOrdinals: [1]"))
	careless := sent(t, "v1alpha1", "replicas: 3")
	careless.SetNamespace(set.GetNamespace())
	careless.SetResourceVersion(set.GetResourceVersion())
	require.ErrorContains(t, c.Update(t.Context(), careless),
		"metadata.annotations[apps.kruise.io/v1beta1-fields].spec.reserveOrdinals: Forbidden: v1alpha1 cannot express reserveOrdinals")

	careless.SetAnnotations(map[string]string{coreconversion.AcceptLossAnnotation: "true"})
	require.NoError(t, c.Update(t.Context(), careless))
	assert.Empty(t, stored(t, c, set).Spec.ReserveOrdinals)
}

func testAnnotation(t *testing.T, c client.Client) {
	t.Helper()
	set := sent(t, "v1alpha1", "")
	set.SetNamespace(env.Namespace(t))
	set.SetAnnotations(map[string]string{conversion.FieldsAnnotation: `{"spec":{"reserveOrdinals":["2-1"]}}`})
	require.ErrorContains(t, c.Create(t.Context(), set.DeepCopy()), `metadata.annotations[apps.kruise.io/v1beta1-fields].spec.reserveOrdinals[0]: Invalid value: "2-1"`)

	set.SetAnnotations(map[string]string{conversion.FieldsAnnotation: `{"spec":{"reserve":1}}`})
	err := c.Create(t.Context(), set.DeepCopy())
	assert.True(t, apierrors.IsInvalid(err))
	require.ErrorContains(t, err, `metadata.annotations[apps.kruise.io/v1beta1-fields]: Invalid value: "{\"spec\":{\"reserve\":1}}": must have only the fields that v1alpha1 lacks: unknown field spec.reserve`)

	set.SetAnnotations(map[string]string{conversion.FieldsAnnotation: `{"spec":{"reserveOrdinals":[2]}}`})
	require.NoError(t, c.Create(t.Context(), set))
	hub := stored(t, c, set)
	assert.Equal(t, int32(2), hub.Spec.ReserveOrdinals[0].IntVal)
	assert.Empty(t, hub.Annotations)
}

func testWarnings(t *testing.T, _ client.Client) {
	t.Helper()
	c, warnings := env.Warned(t)
	workloads.Create(t, c, env.Namespace(t), sent(t, "v1beta1", "ordinals: {start: 2}"))
	assert.Contains(t, warnings.Heard(), "spec.ordinals has no effect: feature gate StatefulSetStartOrdinal of the StatefulSet operator is off")
}

// An edit that is only tried is answered, too: pipelines ask before they apply.
func testForecasts(t *testing.T, _ client.Client) {
	t.Helper()
	c, warnings := env.Warned(t)
	set := workloads.Create(t, c, env.Namespace(t), sent(t, "v1beta1", ""))
	counted := stored(t, c, set)
	counted.Status.Replicas, counted.Status.UpdatedReplicas = 1, 1
	require.NoError(t, c.Status().Update(t.Context(), counted))
	warnings.Heard()
	require.NoError(t, workloads.Changing(t, client.NewDryRunClient(c), set, func(s *v1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "app:next" }))
	assert.Equal(t, []string{"1 of 1 pods will be recreated, at most 1 at a time: podUpdatePolicy is ReCreate"}, warnings.Heard())
	require.NoError(t, workloads.Changing(t, c, set, func(s *v1beta1.StatefulSet) { s.Spec.MinReadySeconds = 3 }))
	assert.Empty(t, warnings.Heard())
}
