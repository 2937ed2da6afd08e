package workloads

import (
	"io/fs"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

// minimal is the spec of the smallest workload.
const minimal = `
selector: {matchLabels: {app: web}}
template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: nginx}]}}
`

// Webhooks are those of a kind with the versions v1alpha1 and v1beta1, of which the second is stored.
type Webhooks struct {
	// Env is the environment, which has the kind's CRD and webhook configurations.
	Env *testenv.Environment
	// Kind and Resource name the kind, as in CloneSet and clonesets.
	Kind, Resource string
	// Unscaled is true for a kind without replicas and subresource scale.
	Unscaled bool
	// Config are the shipped manifests.
	Config fs.FS
}

// Serve answers the webhooks until the test ends. The given function makes them, for the client of the operator.
func (w Webhooks) Serve(t *testing.T, of func(operator client.Client) manager.Webhook) client.Client {
	t.Helper()
	mgr := w.Env.Manager(t)
	manager.WebhooksOf(of(w.Env.ClientAs(t, "operator"))).Register(mgr.GetWebhookServer())
	w.Env.Start(t, mgr)

	probe := w.Sent(t, "v1alpha1", "")
	probe.SetNamespace(w.Env.Namespace(t))
	w.Env.ConvertHere(t, w.Resource+"."+contract.AppsGroup, probe)
	return w.Env.Client(t)
}

// Sent returns a workload as a user writes it in a version: the minimal one with further fields of the spec.
func (w Webhooks) Sent(t testing.TB, version, members string) *unstructured.Unstructured {
	t.Helper()
	spec := testenv.Fields(t, minimal)
	maps.Copy(spec, testenv.Fields(t, members))
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetAPIVersion(contract.AppsGroup + "/" + version)
	o.SetKind(w.Kind)
	o.SetName("web")
	return o
}

// Create creates the object as kubectl does, with strict validation of fields.
func Create(t testing.TB, c client.Client, namespace string, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	o.SetNamespace(namespace)
	require.NoError(t, c.Create(t.Context(), o, client.FieldValidation(metav1.FieldValidationStrict)))
	return o
}

// Stored returns the object in the version of T.
func Stored[T any, P fastclient.Object[T]](t testing.TB, c client.Client, o client.Object) P {
	t.Helper()
	stored := P(new(T))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), stored))
	return stored
}

// Changing updates the stored object with a change and returns the server's answer.
func Changing[T any, P fastclient.Object[T]](t testing.TB, c client.Client, o client.Object, change func(P)) error {
	t.Helper()
	stored := Stored[T, P](t, c, o)
	change(stored)
	return c.Update(t.Context(), stored)
}

// Case is a workload and a part of the error with which it is rejected; without an error it is accepted.
type Case = struct{ Name, Version, Members, Want string }

// CheckAnswers sends workloads and compares the server's answers.
func (w Webhooks) CheckAnswers(t *testing.T, c client.Client, cases []Case) {
	t.Helper()
	namespace := w.Env.Namespace(t)
	for _, test := range cases {
		t.Run(test.Name, func(t *testing.T) {
			o := w.Sent(t, test.Version, test.Members)
			o.SetNamespace(namespace)
			err := c.Create(t.Context(), o, client.DryRunAll)
			if test.Want == "" {
				require.NoError(t, err)
				return
			}
			assert.True(t, apierrors.IsInvalid(err))
			assert.ErrorContains(t, err, test.Want)
		})
	}
}
