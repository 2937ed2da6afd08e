package testenv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Leftovers creates the objects of a YAML file, as another operator left them, in a new namespace and returns its name.
// Each object is changed by all functions first. Owners must come before their dependents in the file: the server gives
// every object a new UID, and owner references are changed to it. Statuses are written unchanged.
func (e *Environment) Leftovers(t testing.TB, file string, change ...func(*unstructured.Unstructured)) (namespace string) {
	t.Helper()
	namespace = e.Namespace(t)
	c := e.Client(t)
	uids := map[types.UID]types.UID{}
	for _, o := range Manifests(t, os.DirFS(filepath.Dir(file)), filepath.Base(file)) {
		for _, c := range change {
			c(o)
		}
		status := o.Object["status"]
		old := o.GetUID()
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
