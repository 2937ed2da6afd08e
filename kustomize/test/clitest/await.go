package clitest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// AwaitKinds waits until clients find the kinds of CRDs, which it names.
func AwaitKinds(t *testing.T, names ...string) {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &Administrator
	cluster, err := apply.Connect(flags)
	require.NoError(t, err)
	var definitions []*unstructured.Unstructured
	for _, name := range names {
		definition := &unstructured.Unstructured{}
		definition.SetAPIVersion("apiextensions.k8s.io/v1")
		definition.SetKind("CustomResourceDefinition")
		definition.SetName(name)
		definitions = append(definitions, definition)
	}
	require.NoError(t, apply.Await(t.Context(), startTimeout, func(string) {}, cluster.AllServed(definitions)))
}

// WithoutWebhooks deletes all webhook configurations: no manager answers their webhooks.
func WithoutWebhooks(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		resource := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: kind}
		require.NoError(t, Objects(t).Resource(resource).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	}
}

// Create creates an object unless it is there. It tries again while the API server still calls a webhook that was deleted.
func Create(t *testing.T, resource schema.GroupVersionResource, namespace string, object *unstructured.Unstructured) {
	t.Helper()
	objects := Objects(t).Resource(resource).Namespace(namespace)
	require.NoError(t, apply.Await(t.Context(), startTimeout, func(string) {}, func(ctx context.Context) (bool, string, error) {
		_, err := objects.Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
		return err == nil, "", err
	}))
}
