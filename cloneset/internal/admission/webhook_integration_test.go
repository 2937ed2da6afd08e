package admission

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/config"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/workloads"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		CRDs:     []string{"../../config/crd/clonesets.yaml"},
		Webhooks: envtest.WebhookInstallOptions{Paths: []string{"../../config/webhook"}},
		Scheme:   testenv.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme),
	})
}

var webhooks = workloads.Webhooks{Env: &env, Kind: "CloneSet", Resource: "clonesets", Config: config.Files}

// serve answers the webhooks of the shipped configurations until the test ends.
func serve(t *testing.T) client.Client {
	t.Helper()
	return webhooks.Serve(t, func(operator client.Client) manager.Webhook {
		return NewWebhook(Reader{
			Pods:      CachedPods{Cache: operator, Server: operator},
			Templates: podtemplate.Validator{Cluster: podtemplate.New(operator, clock.RealClock{})},
			Forecast:  true,
		}, true)
	})
}

// sent is a CloneSet as a user writes it in a version: a minimal one with more members of the spec.
func sent(t *testing.T, version, members string) *unstructured.Unstructured {
	t.Helper()
	return webhooks.Sent(t, version, members)
}

func stored(t *testing.T, c client.Client, set client.Object) *v1beta1.CloneSet {
	t.Helper()
	return workloads.Stored[v1beta1.CloneSet](t, c, set)
}

// changing changes the stored set through v1beta1.
func changing(t *testing.T, c client.Client, set client.Object, change func(*v1beta1.CloneSet)) error {
	t.Helper()
	return workloads.Changing(t, c, set, change)
}

func TestWebhooks(t *testing.T) {
	c := serve(t)
	tests := webhooks.Common()
	maps.Copy(tests, map[string]func(*testing.T, client.Client){
		"defaults": testDefaults, "validation": testValidation, "updates": testUpdates,
		"pods to delete": testPodsToDelete, "conversion": testConversion,
		"forecasts": testForecasts,
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
			spec := stored(t, c, set).Spec
			assert.Equal(t, new(int32(1)), spec.Replicas)
			assert.Equal(t, version == "v1alpha1", spec.ScaleStrategy.EnablePVCReuse)
			assert.Equal(t, v1beta1.CloneSetUpdateStrategy{
				Type: v1beta1.RollingUpdate,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: v1beta1.ReCreate, Partition: number(0), MaxUnavailable: text("20%"), MaxSurge: number(0),
				},
			}, spec.UpdateStrategy)
		})
	}
}

func testValidation(t *testing.T, c client.Client) {
	t.Helper()
	webhooks.CheckAnswers(t, c, []workloads.Case{
		{"v1alpha1 path of a strategy member", "v1alpha1", "updateStrategy: {maxUnavailable: 0}", `spec.updateStrategy.maxUnavailable: Invalid value: 0: maxUnavailable and maxSurge should not both be less than 1`},
		{"v1beta1 path of a strategy member", "v1beta1", "updateStrategy: {rollingUpdate: {maxUnavailable: 0}}", `spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: maxUnavailable and maxSurge should not both be less than 1`},
		{"v1alpha1 type", "v1alpha1", "updateStrategy: {type: Recreate}", "spec.updateStrategy.type: Invalid value: \"Recreate\": must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly'"},
		{"v1alpha1 words", "v1alpha1", "updateStrategy: {type: InPlaceOnly, maxSurge: 1}", "spec.updateStrategy.maxSurge: Invalid value: 1: can not use maxSurge with strategy type InPlaceOnly"},
		{"v1beta1 words", "v1beta1", "updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly, maxSurge: 1}}", "can not use maxSurge with podUpdatePolicy InPlaceOnly"},
		{"surge alone", "v1beta1", "updateStrategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}", ""},
		{"partition of no number", "v1alpha1", "updateStrategy: {partition: x%}", "spec.updateStrategy.partition: Invalid value: \"x%\": must be a number or a percentage such as 20%"},
	})
}

func testUpdates(t *testing.T, c client.Client) {
	t.Helper()
	set := workloads.Create(t, c, env.Namespace(t), sent(t, "v1beta1", "updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}"))
	require.ErrorContains(t, changing(t, c, set, func(s *v1beta1.CloneSet) {
		s.Spec.Selector.MatchLabels["tier"], s.Spec.Template.Labels["tier"] = "a", "a"
	}), "spec: Forbidden: updates to cloneset spec for fields other than 'replicas'")
	require.ErrorContains(t, changing(t, c, set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Command = []string{"run"} }),
		"spec: Forbidden: only allowed to update images in spec for InPlaceOnly, but found add /containers/0/command")
	assert.NoError(t, changing(t, c, set, func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.Containers[0].Image = "nginx:2"
		s.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst
	}), "an image, and a default of the cluster written out")
}

func testPodsToDelete(t *testing.T, c client.Client) {
	t.Helper()
	namespace := env.Namespace(t)
	set := workloads.Create(t, c, namespace, sent(t, "v1alpha1", ""))
	pod := func(name string, owner *unstructured.Unstructured) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "nginx"}}
		if owner != nil {
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
		}
		require.NoError(t, c.Create(t.Context(), pod))
	}
	pod("mine", set)
	pod("foreign", nil)
	list := func(names ...string) error {
		return changing(t, c, set, func(s *v1beta1.CloneSet) { s.Spec.ScaleStrategy.PodsToDelete = names })
	}
	require.ErrorContains(t, list("absent"), "pod absent not found")
	require.ErrorContains(t, list("foreign"), "pod foreign does not belong to this CloneSet")
	require.NoError(t, list("mine"))
	require.NoError(t, c.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: namespace}}, client.GracePeriodSeconds(0)))
	assert.NoError(t, list("mine"), "a name that is listed already is not looked up")
}

func testConversion(t *testing.T, c client.Client) {
	t.Helper()
	set := sent(t, "v1alpha1", "updateStrategy: {type: InPlaceIfPossible, partition: 50%, inPlaceUpdateStrategy: {gracePeriodSeconds: 3}}")
	set.SetLabels(map[string]string{contract.ScalingExcludePreparingDeleteLabel: "true"})
	set = workloads.Create(t, c, env.Namespace(t), set)

	hub := stored(t, c, set)
	assert.True(t, hub.Spec.ScaleStrategy.ExcludePreparingDelete)
	assert.Equal(t, v1beta1.InPlaceIfPossible, hub.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy)

	hub.Spec.UpdateStrategy.Type = v1beta1.OnDelete
	require.NoError(t, c.Update(t.Context(), hub))
	var spoke v1alpha1.CloneSet
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), &spoke))
	assert.Equal(t, v1alpha1.OnDelete, spoke.Spec.UpdateStrategy.Type)
	assert.Equal(t, text("50%"), spoke.Spec.UpdateStrategy.Partition)

	careless := spoke.DeepCopy()
	careless.Annotations = nil
	require.ErrorContains(t, c.Update(t.Context(), careless), "spec.updateStrategy.type: Forbidden: v1alpha1 cannot express podUpdatePolicy InPlaceIfPossible with type OnDelete")
	require.NoError(t, c.Update(t.Context(), &spoke))
	assert.Equal(t, hub.Spec, stored(t, c, set).Spec)
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
	require.NoError(t, workloads.Changing(t, client.NewDryRunClient(c), set, func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Image = "app:next" }))
	assert.Equal(t, []string{"1 of 1 pods will be recreated, at most 1 at a time: podUpdatePolicy is ReCreate"}, warnings.Heard())
	require.NoError(t, workloads.Changing(t, c, set, func(s *v1beta1.CloneSet) { s.Spec.MinReadySeconds = 3 }))
	assert.Empty(t, warnings.Heard())
}
