package admission_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	coreadmission "github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/jobs/api/v1alpha1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/admission"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		CRDs:     []string{"../../../config/crd/advancedcronjobs.yaml"},
		Webhooks: envtest.WebhookInstallOptions{Paths: []string{"../../../config/webhook"}},
		Scheme:   testenv.Scheme(v1beta1.AddToScheme, v1alpha1.AddToScheme),
	})
}

// serve answers the webhooks until the test ends. What they ask the cluster is sent as send does.
func serve(t *testing.T, send faults.Send) client.Client {
	t.Helper()
	env.Need(t)
	mgr := env.Manager(t)
	asked := faults.Over(env, send)
	asker := asked.ClientAs(t, "operator")
	manager.WebhooksOf(admission.NewWebhook(admission.Rules{
		Pods: podtemplate.Validator{Cluster: podtemplate.New(asker, clock.RealClock{})},
		Jobs: admission.Jobs{Client: asker, Limit: coreadmission.QueryLimiter()},
	})).Register(mgr.GetWebhookServer())
	env.Start(t, mgr)
	probe := cron(t, "v1alpha1", jobs)
	probe.SetNamespace(env.Namespace(t))
	env.ConvertHere(t, "advancedcronjobs.apps.kruise.io", probe)
	return env.Client(t)
}

const (
	container = `{name: main, image: busybox}`
	jobs      = `{jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [` + container + `]}}}}}`
	each      = `{broadcastJobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [` + container + `]}}}}}`
	images    = `{imageListPullJobTemplate: {spec: {images: [nginx], completionPolicy: {type: Always}}}}`
)

func cron(t *testing.T, version, template string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: testenv.Fields(t, `{metadata: {name: cron}, spec: {schedule: "@daily", template: `+template+`}}`)}
	o.SetAPIVersion("apps.kruise.io/" + version)
	o.SetKind("AdvancedCronJob")
	return o
}

func create(t *testing.T, c client.Client, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	o.SetNamespace(env.Namespace(t))
	require.NoError(t, c.Create(t.Context(), o, client.FieldValidation(metav1.FieldValidationStrict)))
	return o
}

func TestWebhooks(t *testing.T) {
	c := serve(t, func(r *http.Request, next http.RoundTripper) (*http.Response, error) { return next.RoundTrip(r) })
	for name, test := range map[string]func(*testing.T, client.Client){
		"new objects":              testNew,
		"templates are untouched":  testStored,
		"templates never change":   testChange,
		"lists of images change":   testImages,
		"what the quota says":      testQuota,
		"lists through v1alpha1":   testSpoke,
		"objects that are deleted": testDeleted,
	} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

// A server that takes its time finds good objects good.
func TestASlowServerIsWaitedFor(t *testing.T) {
	var slow atomic.Bool
	c := serve(t, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if slow.Load() && r.URL.Query().Has("dryRun") {
			<-time.After(2500 * time.Millisecond)
		}
		return next.RoundTrip(r)
	})
	slow.Store(true)
	create(t, c, cron(t, "v1beta1", `{jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: slow, image: busybox}]}}}}}`))
}

func testNew(t *testing.T, c client.Client) {
	t.Helper()
	for template, want := range map[string]string{
		jobs: "", each: "", images: "",
		`{}`: "spec.template: Required value",
		`{jobTemplate: {spec: {template: {spec: {containers: [` + container + `]}}}}}`:                                                       "spec.template.jobTemplate.spec.template.spec.restartPolicy: ",
		`{jobTemplate: {spec: {completionMode: Some, template: {spec: {restartPolicy: Never, containers: [` + container + `]}}}}}`:           "spec.template.jobTemplate.spec.completionMode: Unsupported value",
		`{jobTemplate: {metadata: {labels: {a: "b c"}}, spec: {template: {spec: {restartPolicy: Never, containers: [` + container + `]}}}}}`: "spec.template.jobTemplate.metadata.labels: Invalid value",
		`{jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main}]}}}}}`:                                      "spec.template.jobTemplate.spec.template.spec.containers[0].image: Required value",
		`{broadcastJobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main}]}}}}}`:                             "spec.template.broadcastJobTemplate.spec.template.spec.containers[0].image: Required value",
	} {
		o := cron(t, "v1beta1", template)
		o.SetNamespace(env.Namespace(t))
		err := c.Create(t.Context(), o, client.DryRunAll)
		if want == "" {
			require.NoError(t, err, template)
			continue
		}
		assert.True(t, apierrors.IsInvalid(err), template)
		assert.ErrorContains(t, err, want)
	}
}

func testStored(t *testing.T, c client.Client) {
	t.Helper()
	for _, template := range []string{jobs, each, images} {
		o := create(t, c, cron(t, "v1beta1", template))
		assert.Equal(t, testenv.Fields(t, template), o.Object["spec"].(map[string]any)["template"])
		policy, _, _ := unstructured.NestedString(o.Object, "spec", "concurrencyPolicy")
		assert.NotEmpty(t, policy)
	}
}

// set updates a field of the template of the stored object.
func set(t *testing.T, c client.Client, o *unstructured.Unstructured, value any, path ...string) error {
	t.Helper()
	now := o.DeepCopy()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), now))
	require.NoError(t, unstructured.SetNestedField(now.Object, value, append([]string{"spec", "template"}, path...)...))
	return c.Update(t.Context(), now)
}

func testChange(t *testing.T, c client.Client) {
	t.Helper()
	o := create(t, c, cron(t, "v1beta1", jobs))
	require.NoError(t, set(t, c, o, int64(1), "jobTemplate", "spec", "completions"), "the server's default is no difference")
	require.NoError(t, set(t, c, o, "ClusterFirst", "jobTemplate", "spec", "template", "spec", "dnsPolicy"))
	err := set(t, c, o, int64(2), "jobTemplate", "spec", "completions")
	require.ErrorContains(t, err, "spec.template.jobTemplate.spec.completions: Forbidden: immutable; create a new AdvancedCronJob")
	err = set(t, c, o, testenv.Fields(t, each)["broadcastJobTemplate"], "broadcastJobTemplate")
	require.ErrorContains(t, err, "spec.template.broadcastJobTemplate: Forbidden: there is jobTemplate already")

	job := []string{"jobTemplate", "spec", "template", "spec", "containers"}
	filled := testenv.Fields(t, `{name: main, image: "busybox:1", imagePullPolicy: Always}`)
	o = cron(t, "v1beta1", jobs)
	require.NoError(t, unstructured.SetNestedSlice(o.Object, []any{filled}, append([]string{"spec", "template"}, job...)...))
	o = create(t, c, o)
	filled["imagePullPolicy"] = "IfNotPresent"
	require.ErrorContains(t, set(t, c, o, []any{filled}, job...), "containers[0].imagePullPolicy: Forbidden: immutable")
	delete(filled, "imagePullPolicy")
	require.NoError(t, set(t, c, o, []any{filled}, job...), "it is what an absent policy means, and OpenKruise had filled it in")
	filled["imagePullPolicy"] = "Always"
	require.NoError(t, set(t, c, o, []any{filled}, job...))
	filled["imagePullPolicy"] = "IfNotPresent"
	o = cron(t, "v1beta1", jobs)
	require.NoError(t, unstructured.SetNestedSlice(o.Object, []any{filled}, append([]string{"spec", "template"}, job...)...))
	o = create(t, c, o)
	delete(filled, "imagePullPolicy")
	require.ErrorContains(t, set(t, c, o, []any{filled}, job...), "containers[0].imagePullPolicy: Forbidden: immutable", "its images would be pulled always")

	o = create(t, c, cron(t, "v1beta1", each))
	main := testenv.Fields(t, `{name: main, image: busybox, imagePullPolicy: Always, terminationMessagePath: /dev/termination-log}`)
	pod := []string{"broadcastJobTemplate", "spec", "template", "spec", "containers"}
	require.NoError(t, set(t, c, o, []any{main}, pod...), "what OpenKruise had filled in is no difference")
	main["imagePullPolicy"] = "IfNotPresent"
	require.ErrorContains(t, set(t, c, o, []any{main}, pod...), "containers[0].imagePullPolicy: Forbidden: immutable")
	require.NoError(t, set(t, c, o, testenv.Fields(t, `{type: FailFast}`), "broadcastJobTemplate", "spec", "failurePolicy"))
}

func testImages(t *testing.T, c client.Client) {
	t.Helper()
	o := create(t, c, cron(t, "v1beta1", images))
	require.NoError(t, set(t, c, o, []any{"redis"}, "imageListPullJobTemplate", "spec", "images"))
	require.ErrorContains(t, set(t, c, o, []any{}, "imageListPullJobTemplate", "spec", "images"), "images: Required value")
}

// A quota is about the jobs that are made.
func testQuota(t *testing.T, c client.Client) {
	t.Helper()
	o := cron(t, "v1beta1", jobs)
	o.SetNamespace(env.Namespace(t))
	none := corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	require.NoError(t, c.Create(t.Context(), quota))
	quota.Status.Hard, quota.Status.Used = none, none
	require.NoError(t, c.Status().Update(t.Context(), quota))
	require.NoError(t, c.Create(t.Context(), o))
}

// A client of v1alpha1 sees no template, and changes other fields.
func testSpoke(t *testing.T, c client.Client) {
	t.Helper()
	o := create(t, c, cron(t, "v1beta1", images))
	old := &v1alpha1.AdvancedCronJob{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), old))
	old.Spec.Paused = new(true)
	require.NoError(t, c.Update(t.Context(), old))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	assert.Equal(t, testenv.Fields(t, images), o.Object["spec"].(map[string]any)["template"])

	// One that is restored from a backup of that version is completed as one of the newer version.
	restored := cron(t, "v1alpha1", "{}")
	restored.SetAnnotations(map[string]string{v1beta1.TemplateAnnotation: `{"spec": {"images": ["nginx"], "completionPolicy": {}}}`})
	create(t, c, restored)
	stored := &v1beta1.AdvancedCronJob{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(restored), stored))
	require.NotNil(t, stored.Spec.Template.ImageListPullJobTemplate)
	assert.Equal(t, v1beta1.CompletionAlways, stored.Spec.Template.ImageListPullJobTemplate.Spec.CompletionPolicy.Type)
	assert.Equal(t, v1beta1.ReplaceConcurrent, stored.Spec.ConcurrencyPolicy)
	assert.Empty(t, stored.Annotations)
}

func testDeleted(t *testing.T, c client.Client) {
	t.Helper()
	o := cron(t, "v1beta1", jobs)
	o.SetFinalizers([]string{"example.com/hold"})
	create(t, c, o)
	require.NoError(t, c.Delete(t.Context(), o))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	o.SetFinalizers(nil)
	require.NoError(t, c.Update(t.Context(), o))
}
