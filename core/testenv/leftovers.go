package testenv

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Leftovers makes the objects of a YAML file, as another operator left them, in a namespace of their own
// and returns it. Owners stand before what they own: the server gives every object a new UID, and owner
// references follow. Statuses are written as they were. The changes are made to every object before.
func (e *Environment) Leftovers(t testing.TB, file string, change ...func(*unstructured.Unstructured)) (namespace string) {
	t.Helper()
	namespace = e.Namespace(t)
	c := e.Client(t)
	uids := map[types.UID]types.UID{}
	for _, o := range readObjects(t, file) {
		for _, c := range change {
			c(o)
		}
		status, old := o.Object["status"], o.GetUID()
		o.SetNamespace(namespace)
		o.SetUID("")
		o.SetResourceVersion("")
		owners := o.GetOwnerReferences()
		for i := range owners {
			require.Contains(t, uids, owners[i].UID, "owners come first")
			owners[i].UID = uids[owners[i].UID]
		}
		o.SetOwnerReferences(owners)
		require.NoError(t, c.Create(t.Context(), o), o.GetName())
		uids[old] = o.GetUID()
		if status != nil {
			o.Object["status"] = status
			require.NoError(t, c.Status().Update(t.Context(), o), o.GetName())
		}
	}
	return namespace
}

func readObjects(t testing.TB, file string) []*unstructured.Unstructured {
	t.Helper()
	reader, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = reader.Close() }()
	decoder := yaml.NewYAMLOrJSONDecoder(reader, 4096)
	var all []*unstructured.Unstructured
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, o)
	}
}
