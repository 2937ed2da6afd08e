package admission

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/config"
	"github.com/flotilla-project/flotilla/core/admission"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/podtemplate"
	"github.com/flotilla-project/flotilla/core/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	env.Run(m, testenv.Options{
		CRDs:     []string{"../../config/crd/clonesets.yaml"},
		Webhooks: envtest.WebhookInstallOptions{Paths: []string{"../../config/webhook"}},
		Scheme:   scheme,
	})
}

// serve answers the webhooks of the shipped configurations until the test ends.
func serve(t *testing.T) client.Client {
	t.Helper()
	mgr := env.Manager(t)
	webhook := Webhook{
		Reader: Reader{
			Pods:      CachedPods{Cache: mgr.GetAPIReader(), Server: mgr.GetAPIReader()},
			Templates: podtemplate.Judge{Cluster: podtemplate.New(env.ClientAs(t, "cloneset-manager"), clock.RealClock{})},
		},
		DeletionProtection: true,
	}
	for _, endpoint := range []admission.Endpoint{webhook.Mutating(), webhook.Validating()} {
		mgr.GetWebhookServer().Register(endpoint.Path, endpoint.Handler)
	}
	mgr.GetWebhookServer().Register(admission.ConvertPath, webhook.Converting())
	env.Start(t, mgr)

	probe := sent(t, "v1alpha1", "{}")
	probe.SetNamespace(env.Namespace(t))
	env.ConvertHere(t, "clonesets.apps.kruise.io", probe)
	return env.Client(t)
}

const minimal = `
selector: {matchLabels: {app: web}}
template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: nginx}]}}
`

// sent is a CloneSet as a user writes it in a version: a minimal one with more members of the spec.
func sent(t *testing.T, version, members string) *unstructured.Unstructured {
	t.Helper()
	spec := testenv.Fields(t, minimal)
	maps.Copy(spec, testenv.Fields(t, members))
	set := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	set.SetAPIVersion("apps.kruise.io/" + version)
	set.SetKind("CloneSet")
	set.SetName("web")
	return set
}

func TestWebhooks(t *testing.T) {
	c := serve(t)
	t.Run("defaults", func(t *testing.T) { testDefaults(t, c) })
	t.Run("validation", func(t *testing.T) { testValidation(t, c) })
	t.Run("updates", func(t *testing.T) { testUpdates(t, c) })
	t.Run("pods to delete", func(t *testing.T) { testPodsToDelete(t, c) })
	t.Run("conversion", func(t *testing.T) { testConversion(t, c) })
	t.Run("samples", func(t *testing.T) { testSamples(t, c) })
	t.Run("deletion", func(t *testing.T) { testDeletion(t, c) })
}

func create(t *testing.T, c client.Client, namespace string, set *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	set.SetNamespace(namespace)
	require.NoError(t, c.Create(t.Context(), set, client.FieldValidation(metav1.FieldValidationStrict)))
	return set
}

func stored(t *testing.T, c client.Client, set client.Object) *v1beta1.CloneSet {
	t.Helper()
	var hub v1beta1.CloneSet
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), &hub))
	return &hub
}

func testDefaults(t *testing.T, c client.Client) {
	t.Helper()
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			set := sent(t, version, "")
			template := set.DeepCopy().Object["spec"].(map[string]any)["template"]
			set = create(t, c, env.Namespace(t), set)
			assert.Equal(t, template, set.Object["spec"].(map[string]any)["template"], "the template is stored as it was sent")

			spec := stored(t, c, set).Spec
			assert.Equal(t, new(int32(1)), spec.Replicas)
			assert.Equal(t, version == "v1alpha1", spec.ScaleStrategy.EnablePVCReuse)
			assert.Equal(t, v1beta1.CloneSetUpdateStrategy{
				Type: v1beta1.RollingUpdate,
				RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: v1beta1.ReCreate, Partition: number(0), MaxUnavailable: text("20%"), MaxSurge: number(0),
				},
			}, spec.UpdateStrategy)

			again := sent(t, version, "")
			again.SetNamespace(set.GetNamespace())
			again.SetResourceVersion(set.GetResourceVersion())
			require.NoError(t, c.Update(t.Context(), again))
			assert.Equal(t, set.GetGeneration(), again.GetGeneration(), "sending it again changes nothing")
		})
	}
}

func testValidation(t *testing.T, c client.Client) {
	t.Helper()
	namespace := env.Namespace(t)
	cases := []struct{ name, version, members, want string }{
		{"v1alpha1 path of a strategy member", "v1alpha1", "updateStrategy: {maxUnavailable: 0}", `spec.updateStrategy.maxUnavailable: Invalid value: 0: maxUnavailable and maxSurge should not both be less than 1`},
		{"v1beta1 path of a strategy member", "v1beta1", "updateStrategy: {rollingUpdate: {maxUnavailable: 0}}", `spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: maxUnavailable and maxSurge should not both be less than 1`},
		{"v1alpha1 type", "v1alpha1", "updateStrategy: {type: Recreate}", "spec.updateStrategy.type: Invalid value: \"Recreate\": must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly'"},
		{"v1alpha1 OnDelete", "v1alpha1", "updateStrategy: {type: OnDelete}", ""},
		{"v1alpha1 words", "v1alpha1", "updateStrategy: {type: InPlaceOnly, maxSurge: 1}", "spec.updateStrategy.maxSurge: Invalid value: 1: can not use maxSurge with strategy type InPlaceOnly"},
		{"v1beta1 words", "v1beta1", "updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly, maxSurge: 1}}", "can not use maxSurge with podUpdatePolicy InPlaceOnly"},
		{"surge alone", "v1beta1", "updateStrategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}", ""},
		{"partition of no number", "v1alpha1", "updateStrategy: {partition: x%}", "spec.updateStrategy.partition: Invalid value: \"x%\": failed GetScaledValueFromIntOrPercent for partition: "},
		{"an empty selector", "v1beta1", "selector: {}", "empty selector is invalid for cloneset"},
		{"a template that the cluster refuses", "v1alpha1", "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: Main, image: nginx}]}}", "spec.template.spec.containers[0].name: Invalid value: \"Main\""},
		{"a mount of no volume", "v1beta1", "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: nginx, volumeMounts: [{name: data, mountPath: /data}]}]}}", "spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"data\""},
		{"a mount of a claim", "v1beta1", "{template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: nginx, volumeMounts: [{name: data, mountPath: /data}]}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}", ""},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			set := sent(t, test.version, test.members)
			set.SetNamespace(namespace)
			err := c.Create(t.Context(), set, client.DryRunAll)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			assert.True(t, apierrors.IsInvalid(err))
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func testUpdates(t *testing.T, c client.Client) {
	t.Helper()
	set := create(t, c, env.Namespace(t), sent(t, "v1beta1", "updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceOnly}}"))
	change := func(change func(*v1beta1.CloneSet)) error {
		hub := stored(t, c, set)
		change(hub)
		return c.Update(t.Context(), hub)
	}
	require.ErrorContains(t, change(func(s *v1beta1.CloneSet) {
		s.Spec.Selector.MatchLabels["tier"], s.Spec.Template.Labels["tier"] = "a", "a"
	}), "spec: Forbidden: updates to cloneset spec for fields other than 'replicas'")
	require.ErrorContains(t, change(func(s *v1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Command = []string{"run"} }),
		"spec: Forbidden: only allowed to update images in spec for InPlaceOnly, but found add /containers/0/command")
	assert.NoError(t, change(func(s *v1beta1.CloneSet) {
		s.Spec.Template.Spec.Containers[0].Image = "nginx:2"
		s.Spec.Template.Spec.DNSPolicy = corev1.DNSClusterFirst
	}), "an image, and a default of the cluster written out")
}

func testPodsToDelete(t *testing.T, c client.Client) {
	t.Helper()
	namespace := env.Namespace(t)
	set := create(t, c, namespace, sent(t, "v1alpha1", ""))
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
		hub := stored(t, c, set)
		hub.Spec.ScaleStrategy.PodsToDelete = names
		return c.Update(t.Context(), hub)
	}
	require.ErrorContains(t, list("absent"), `find pod absent failed: pods "absent" not found`)
	require.ErrorContains(t, list("foreign"), "find pod foreign owner is not this CloneSet")
	require.NoError(t, list("mine"))
	require.NoError(t, c.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: namespace}}, client.GracePeriodSeconds(0)))
	assert.NoError(t, list("mine"), "a name that is listed already is not looked up")
}

func testConversion(t *testing.T, c client.Client) {
	t.Helper()
	set := sent(t, "v1alpha1", "updateStrategy: {type: InPlaceIfPossible, partition: 50%, inPlaceUpdateStrategy: {gracePeriodSeconds: 3}}")
	set.SetLabels(map[string]string{contract.ScalingExcludePreparingDeleteLabel: "true"})
	set = create(t, c, env.Namespace(t), set)

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
	require.ErrorContains(t, c.Update(t.Context(), careless), "spec.updateStrategy.type: Forbidden: v1alpha1 cannot say podUpdatePolicy InPlaceIfPossible beside type OnDelete")
	require.NoError(t, c.Update(t.Context(), &spoke))
	assert.Equal(t, hub.Spec, stored(t, c, set).Spec)
}

func testDeletion(t *testing.T, c client.Client) {
	t.Helper()
	namespace := env.Namespace(t)
	set := sent(t, "v1beta1", "")
	set.SetLabels(map[string]string{contract.DeleteProtectionLabel: "Cascading"})
	set = create(t, c, namespace, set)
	err := c.Delete(t.Context(), set)
	assert.True(t, apierrors.IsForbidden(err))
	require.ErrorContains(t, err, "forbidden by ResourcesProtectionDeletion for policy.kruise.io/delete-protection=Cascading and replicas 1>0")

	hub := stored(t, c, set)
	hub.Spec.Replicas = new(int32(0))
	require.NoError(t, c.Update(t.Context(), hub))
	assert.NoError(t, c.Delete(t.Context(), set))
}

func testSamples(t *testing.T, c client.Client) {
	t.Helper()
	namespace := env.Namespace(t)
	for _, name := range []string{"inplace.yaml", "claims.yaml"} {
		text, err := config.Files.ReadFile("samples/" + name)
		require.NoError(t, err)
		var set unstructured.Unstructured
		require.NoError(t, yaml.Unmarshal(text, &set.Object))
		create(t, c, namespace, &set)
	}
}
