package targets_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/targets"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) { env.Run(m, testenv.Options{CRDs: []string{"testdata/crds.yaml"}}) }

// agent begins the user agents of the reader and of the manager, which is that of the test binary.
const agent = "targets"

// world is a namespace with workloads and a reader of them.
type world struct {
	*targets.Reader
	client    client.Client
	namespace string
	clock     *clocktesting.FakePassiveClock
}

// given starts a reader. The functions adapt its options.
func given(t *testing.T, adapt ...func(*targets.Options)) world {
	t.Helper()
	mgr := env.Manager(t)
	w := world{client: env.Client(t), namespace: env.Namespace(t), clock: clocktesting.NewFakePassiveClock(time.Now())}
	o := targets.Options{
		Cache: mgr.GetCache(), Live: env.ClientAs(t, agent), Config: env.ConfigAs(t, agent), Mapper: mgr.GetRESTMapper(), Clock: w.clock,
	}
	for _, adapt := range adapt {
		adapt(&o)
	}
	var err error
	w.Reader, err = targets.New(o)
	require.NoError(t, err)
	env.Start(t, mgr)
	return w
}

// as has the reader ask the server as a user.
func as(t *testing.T, user *rest.Config) func(*targets.Options) {
	t.Helper()
	return func(o *targets.Options) {
		live, err := client.New(user, client.Options{Scheme: env.Scheme, Mapper: o.Mapper})
		require.NoError(t, err)
		o.Live, o.Config = live, user
	}
}

// create makes an object, written in YAML, that an owner controls if there is one.
func (w world) create(t *testing.T, text string, owner client.Object) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: testenv.Fields(t, text)}
	o.SetNamespace(w.namespace)
	if owner != nil {
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GetObjectKind().GroupVersionKind())})
	}
	require.NoError(t, w.client.Create(t.Context(), o))
	return o
}

func (w world) patch(t *testing.T, o client.Object, patch string) {
	t.Helper()
	require.NoError(t, w.client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// replicas returns those of the object, as the reader finds it by name.
func (w world) replicas(t *testing.T, o client.Object) (targets.Replicas, error) {
	t.Helper()
	found, err := w.Get(t.Context(), kindOf(o), client.ObjectKeyFromObject(o))
	require.NoError(t, err)
	return w.Replicas(t.Context(), found)
}

// asksNothing requires that the function has nobody ask the server for an object.
func asksNothing(t *testing.T, f func()) {
	t.Helper()
	audit := env.Audit(t)
	f()
	require.Empty(t, audit.Requests(t, agent))
}

func kindOf(o client.Object) schema.GroupKind {
	return o.GetObjectKind().GroupVersionKind().GroupKind()
}

func names(chain []*metav1.PartialObjectMetadata) []string {
	var all []string
	for _, o := range chain {
		all = append(all, o.Kind+" "+o.Name)
	}
	return all
}

const template = `
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: nginx}]}}
`

const (
	pod   = "{apiVersion: v1, kind: Pod, metadata: {name: web-1}, spec: {containers: [{name: main, image: nginx}]}}"
	fleet = "{apiVersion: example.com/v1, kind: Fleet, metadata: {name: web}, spec: {replicas: 3}}"
	crew  = "{apiVersion: example.com/v1, kind: Crew, metadata: {name: web}, spec: {replicas: 3}}"
)

// workload returns a workload of a kind of the group apps.
func workload(kind, name, members string) string {
	return "apiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec:\n  " + members + template
}
