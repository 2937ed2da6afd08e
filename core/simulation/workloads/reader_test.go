package workloads_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/targets"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/workloads"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

func fleet(name string, replicas any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": map[string]any{"namespace": gen.Namespace, "name": name, "uid": name},
	}}
	if replicas != nil {
		o.Object["spec"] = map[string]any{"replicas": replicas}
	}
	return o
}

func kind(group, name string) schema.GroupKind { return schema.GroupKind{Group: group, Kind: name} }

func TestWorkloadsAreFoundByGroupKindAndName(t *testing.T) {
	w := cluster.New(cluster.Options{})
	w.Add(fleet("web", nil))
	w.Add(fleet("db", nil))
	w.Add(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "web"}})
	r := workloads.NewReader(w)
	for name, c := range map[string]struct {
		kind schema.GroupKind
		name string
		fail func(error) bool
		all  int
	}{
		"a kind of others":          {kind("example.com", "Fleet"), "web", nil, 2},
		"a kind of Kubernetes":      {kind("apps", "ReplicaSet"), "web", nil, 1},
		"another name":              {kind("apps", "ReplicaSet"), "db", apierrors.IsNotFound, 1},
		"another group":             {kind("example.org", "Fleet"), "web", meta.IsNoMatchError, 0},
		"a kind without any object": {kind("apps", "Deployment"), "web", meta.IsNoMatchError, 0},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := r.Get(t.Context(), c.kind, types.NamespacedName{Namespace: gen.Namespace, Name: c.name})
			if c.fail != nil {
				assert.True(t, c.fail(err), "%v", err)
			} else {
				require.NoError(t, err)
				assert.Equal(t, c.name, found.Name)
				assert.Equal(t, c.kind, found.GroupVersionKind().GroupKind())
			}
			all, err := r.List(t.Context(), c.kind, gen.Namespace)
			assert.Len(t, all, c.all)
			assert.Equal(t, c.all == 0, meta.IsNoMatchError(err), "%v", err)
			elsewhere, _ := r.List(t.Context(), c.kind, "elsewhere")
			assert.Empty(t, elsewhere)
		})
	}
}

func TestReplicasAreThoseOfTheScale(t *testing.T) {
	w := cluster.New(cluster.Options{})
	w.Add(fleet("web", int64(3)))
	w.Add(fleet("db", nil))
	r := workloads.NewReader(w)
	replicas := func(name string) (targets.Replicas, error) {
		o, err := r.Get(t.Context(), kind("example.com", "Fleet"), types.NamespacedName{Namespace: gen.Namespace, Name: name})
		require.NoError(t, err)
		return r.Replicas(t.Context(), o)
	}
	n, err := replicas("web")
	require.NoError(t, err)
	assert.Equal(t, int32(3), n.Spec)
	_, err = replicas("db")
	require.ErrorIs(t, err, targets.ErrNoScale)
}

func TestOwnersAreFollowedUpwards(t *testing.T) {
	w := cluster.New(cluster.Options{})
	top, middle := fleet("top", nil), fleet("middle", nil)
	middle.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Fleet", Name: "top", UID: "top", Controller: new(true)}})
	w.Add(top)
	w.Add(middle)
	pod := gen.Pod("web", gen.OwnedBy(middle))
	owners, err := workloads.NewReader(w).Owners(t.Context(), gen.Namespace, pod)
	require.NoError(t, err)
	require.Len(t, owners, 2)
	assert.Equal(t, []string{"middle", "top"}, []string{owners[0].Name, owners[1].Name})
}
