package clitest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/flotilla-project/flotilla/kustomize/apply"
)

// AllowNobody gives the user of `Nobody` rights for resources of all groups until the test ends, by verb.
func AllowNobody(t *testing.T, resources map[string][]string) {
	t.Helper()
	var rules []any
	var wanted []apply.Right
	for verb, names := range resources {
		list := make([]any, 0, len(names))
		for _, name := range names {
			list = append(list, name)
			wanted = append(wanted, apply.Right{Resource: schema.GroupVersionResource{Group: "example.io", Resource: name}, Verbs: []string{verb}})
		}
		rules = append(rules, map[string]any{
			"apiGroups": []any{"*"},
			"resources": list,
			"verbs":     []any{verb},
		})
	}
	const name = "clitest-nobody"
	client := Objects(t)
	for kind, fields := range map[string]map[string]any{
		"ClusterRole": {"rules": rules},
		"ClusterRoleBinding": {
			"roleRef": map[string]any{
				"apiGroup": "rbac.authorization.k8s.io",
				"kind":     "ClusterRole",
				"name":     name,
			},
			"subjects": []any{map[string]any{
				"apiGroup": "rbac.authorization.k8s.io",
				"kind":     "User",
				"name":     "nobody",
			}},
		},
	} {
		object := &unstructured.Unstructured{Object: fields}
		object.SetAPIVersion("rbac.authorization.k8s.io/v1")
		object.SetKind(kind)
		object.SetName(name)
		resource := client.Resource(schema.GroupVersionResource{
			Group:    "rbac.authorization.k8s.io",
			Version:  "v1",
			Resource: map[string]string{"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings"}[kind],
		})
		_, err := resource.Create(t.Context(), object, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, resource.Delete(context.Background(), name, metav1.DeleteOptions{})) })
	}
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &Nobody
	cluster, err := apply.Connect(flags)
	require.NoError(t, err)
	require.NoError(t, apply.Await(t.Context(), 5*time.Minute, func(string) {}, func(ctx context.Context) (bool, string, error) {
		err := cluster.Has(ctx, wanted...)
		if err != nil {
			return false, err.Error(), nil //nolint:nilerr // what it waits for
		}
		return true, "", nil
	}))
}
