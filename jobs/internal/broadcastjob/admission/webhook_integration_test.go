package admission

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/docs"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/jobs/api/v1alpha1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		CRDs:     []string{"../../../config/crd/broadcastjobs.yaml"},
		Webhooks: envtest.WebhookInstallOptions{Paths: []string{"../../../config/webhook"}},
		Scheme:   testenv.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme),
	})
}

// sent is a job as a user writes it.
func sent(t *testing.T, version, spec string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"spec": testenv.Fields(t, spec)}}
	o.SetAPIVersion("apps.kruise.io/" + version)
	o.SetKind(v1beta1.BroadcastJobKind)
	o.SetName("job")
	o.SetNamespace(env.Namespace(t))
	return o
}

const valid = `{template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}`

func TestWebhooks(t *testing.T) {
	mgr := env.Manager(t)
	webhook := NewWebhook(podtemplate.Validator{Cluster: podtemplate.New(env.ClientAs(t, "operator"), clock.RealClock{})})
	manager.WebhooksOf(webhook).Register(mgr.GetWebhookServer())
	env.Start(t, mgr)
	env.ConvertHere(t, "broadcastjobs.apps.kruise.io", sent(t, "v1alpha1", valid))
	c := env.Client(t)
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		t.Run("defaults in "+version, func(t *testing.T) {
			o := sent(t, version, valid)
			want := testenv.Fields(t, valid)
			want["completionPolicy"], want["failurePolicy"] = map[string]any{"type": "Always"}, map[string]any{"type": "FailFast"}
			want["parallelism"] = int64(2147483647)
			require.NoError(t, c.Create(t.Context(), o, client.FieldValidation(metav1.FieldValidationStrict)))
			assert.Equal(t, want, o.Object["spec"])
			require.NoError(t, unstructured.SetNestedField(o.Object, "2", "spec", "parallelism"))
			assert.ErrorContains(t, c.Update(t.Context(), o), "spec.parallelism: Invalid value")
		})
		t.Run("errors in "+version, func(t *testing.T) {
			for spec, want := range map[string]string{
				`{parallelism: 101%, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}}}`: `spec.parallelism: Invalid value: "101%"`,
				`{template: {spec: {containers: [{name: main, image: busybox}]}}}`:                                          `spec.template.spec.restartPolicy: Unsupported value: "Always"`,
				`{template: {spec: {restartPolicy: Never, containers: [{name: MAIN, image: busybox}]}}}`:                    `spec.template.spec.containers[0].name: Invalid value: "MAIN"`,
			} {
				err := c.Create(t.Context(), sent(t, version, spec))
				assert.True(t, apierrors.IsInvalid(err), "%v", err)
				assert.ErrorContains(t, err, want)
			}
		})
	}
	t.Run("examples of the page", func(t *testing.T) {
		for _, example := range docs.Feature(t, "broadcastjob").Examples() {
			o := &unstructured.Unstructured{Object: testenv.Fields(t, example.YAML)}
			o.SetNamespace(env.Namespace(t))
			require.NoError(t, c.Create(t.Context(), o, client.FieldValidation(metav1.FieldValidationStrict)), example.YAML)
		}
	})
}
