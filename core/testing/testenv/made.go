package testenv

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

// made is a client of a test. Objects that it creates outside of the tests' namespaces go when the test ends.
type made struct {
	client.Client
	env *Environment
	t   testing.TB
}

// Create implements client.Client.
func (m made) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if err := m.Client.Create(ctx, o, options...); err != nil {
		return err
	}
	applied := client.CreateOptions{}
	applied.ApplyOptions(options)
	m.env.tests.mu.Lock()
	defer m.env.tests.mu.Unlock()
	if _, ofTest := m.env.tests.namespaces[o.GetNamespace()]; len(applied.DryRun) == 0 && !ofTest {
		left := o.DeepCopyObject().(client.Object)
		m.t.Cleanup(func() { m.env.remove(m.t, left) }) //nolint:contextcheck // it cleans up after the end of the context
	}
	return nil
}

// remove deletes the object, and a namespace with all that is in it.
func (e *Environment) remove(t testing.TB, o client.Object) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), cleanTime)
	defer stop()
	if namespace, is := o.(*corev1.Namespace); is {
		e.cleanUp(t, namespace.Name)
		return
	}
	c, err := client.New(e.cleaner, client.Options{Scheme: e.Scheme})
	require.NoError(t, err)
	if len(o.GetFinalizers()) > 0 {
		err := c.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		if client.IgnoreNotFound(err) != nil {
			t.Errorf("remove the finalizers of %s: %v", o.GetName(), err)
		}
	}
	err = c.Delete(ctx, o, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground))
	assert.NoError(t, client.IgnoreNotFound(err), "delete %s", o.GetName())
}

// Share creates objects that several tests of the package use, unless they are there. They stay until its end, as do objects
// that operators have made on their own.
func (e *Environment) Share(t testing.TB, objects ...client.Object) {
	t.Helper()
	e.Need(t)
	c, err := client.New(e.Config, client.Options{Scheme: e.Scheme})
	require.NoError(t, err)
	for _, o := range objects {
		o := o.DeepCopyObject().(client.Object)
		o.SetResourceVersion("")
		require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), o)))
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		e.share(o)
	}
}

// share notes that an object stays when its test ends.
func (e *Environment) share(o client.Object) {
	e.tests.mu.Lock()
	defer e.tests.mu.Unlock()
	e.tests.shared[o.GetUID()] = true
}

// InstallCRDs installs CRDs, or updates those that are there, and returns them. They stay until the end of the package;
// those of Serve go with the test.
func (e *Environment) InstallCRDs(t testing.TB, o envtest.CRDInstallOptions) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	e.Need(t)
	o.MaxTime = await.Limit
	installed, err := envtest.InstallCRDs(e.Config, o)
	require.NoError(t, err)
	for _, crd := range installed {
		e.share(crd)
	}
	return installed
}
