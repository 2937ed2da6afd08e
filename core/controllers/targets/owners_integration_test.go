package targets_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/targets"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

func TestOwnersOfADeploymentsPod(t *testing.T) {
	w := given(t)
	deployment := w.create(t, workload("Deployment", "web", "replicas: 3"), nil)
	set := w.create(t, workload("ReplicaSet", "web-5d8f", "replicas: 3"), deployment)
	pod := w.create(t, pod, set)

	chain, err := w.Owners(t.Context(), w.namespace, pod)
	require.NoError(t, err)
	assert.Equal(t, []string{"ReplicaSet web-5d8f", "Deployment web"}, names(chain))
	assert.Equal(t, deployment.GetUID(), chain[1].UID)

	asksNothing(t, func() {
		chain, err = w.Owners(t.Context(), w.namespace, pod)
		require.NoError(t, err)
		assert.Len(t, chain, 2)
		chain, err = w.Owners(t.Context(), w.namespace, pod, schema.GroupKind{Group: "apps", Kind: "ReplicaSet"})
		require.NoError(t, err)
		assert.Equal(t, []string{"ReplicaSet web-5d8f"}, names(chain))
		chain, err = w.Owners(t.Context(), w.namespace, deployment)
		require.NoError(t, err)
		assert.Empty(t, chain)
	})
}

func TestOwnersOfACustomWorkloadsPod(t *testing.T) {
	w := given(t)
	owner := w.create(t, fleet, nil)
	pod := w.create(t, pod, owner)
	refs := pod.GetOwnerReferences()
	refs[0].APIVersion = "example.com/v0"
	pod.SetOwnerReferences(refs)

	chain, err := w.Owners(t.Context(), w.namespace, pod)
	require.NoError(t, err, "the version that the reference names does not matter")
	assert.Equal(t, []string{"Fleet web"}, names(chain))
}

func TestOwnersAreFollowedToKindsThatAreNamed(t *testing.T) {
	w := given(t, func(o *targets.Options) {
		o.Follow = func(kind schema.GroupKind) bool { return kind.Group == "apps" }
	})
	owner := w.create(t, fleet, nil)
	set := w.create(t, workload("ReplicaSet", "web-5d8f", "replicas: 3"), owner)
	chain, err := w.Owners(t.Context(), w.namespace, w.create(t, pod, set))
	require.NoError(t, err)
	assert.Equal(t, []string{"ReplicaSet web-5d8f"}, names(chain))
}

func TestOwnersOfAMirrorPodAreNodes(t *testing.T) {
	w := given(t)
	node := w.create(t, "{apiVersion: v1, kind: Node, metadata: {generateName: node-}}", nil)
	chain, err := w.Owners(t.Context(), w.namespace, w.create(t, pod, node))
	require.NoError(t, err)
	assert.Equal(t, []string{"Node " + node.GetName()}, names(chain))
}

func TestOwnersInACircleAreAnError(t *testing.T) {
	w := given(t)
	one := w.create(t, fleet, nil)
	other := w.create(t, crew, one)
	one.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(other, other.GroupVersionKind())})
	require.NoError(t, w.client.Update(t.Context(), one))
	await.Until(t, func(check *assert.CollectT) {
		_, err := w.Owners(t.Context(), w.namespace, one)
		assert.Error(check, err)
	})
	_, err := w.Owners(t.Context(), w.namespace, one)
	assert.ErrorContains(t, err, "there are more than 10")
}

func TestAnOwnerThatIsGone(t *testing.T) {
	w := given(t)
	set := w.create(t, workload("ReplicaSet", "web-5d8f", "replicas: 3"), w.create(t, workload("Deployment", "web", "replicas: 3"), nil))
	pod := w.create(t, pod, set)
	_, err := w.Owners(t.Context(), w.namespace, pod)
	require.NoError(t, err)

	refs := set.GetOwnerReferences()
	refs[0].UID = "of-an-earlier-one"
	set.SetOwnerReferences(refs)
	require.NoError(t, w.client.Update(t.Context(), set))
	gone := func() {
		chain, err := w.Owners(t.Context(), w.namespace, pod)
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
		require.ErrorContains(t, err, "get Deployment.apps "+w.namespace+"/web (of-an-earlier-one): ")
		assert.Equal(t, []string{"ReplicaSet web-5d8f"}, names(chain))
	}
	await.Until(t, func(check *assert.CollectT) {
		_, err := w.Owners(t.Context(), w.namespace, pod)
		assert.Error(check, err)
	})
	gone()
	asksNothing(t, gone)

	_, err = w.Get(t.Context(), schema.GroupKind{Group: "apps", Kind: "Deployment"}, types.NamespacedName{Namespace: w.namespace, Name: "other"})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

// blind is a cache that has not seen any object yet.
type blind struct{ cache.Cache }

func (blind) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func TestAnOwnerYoungerThanTheCacheIsAskedForOnce(t *testing.T) {
	w := given(t, func(o *targets.Options) { o.Cache = blind{o.Cache} })
	owner := w.create(t, fleet, nil)
	pod := w.create(t, pod, owner)
	found := func() {
		chain, err := w.Owners(t.Context(), w.namespace, pod)
		require.NoError(t, err)
		assert.Equal(t, []string{"Fleet web"}, names(chain))
	}
	found()
	asksNothing(t, found)

	require.NoError(t, w.client.Delete(t.Context(), owner))
	w.clock.SetTime(w.clock.Now().Add(2 * time.Second))
	_, err := w.Owners(t.Context(), w.namespace, pod)
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

// late is a cache that sees objects from a moment on.
type late struct {
	cache.Cache

	sees *atomic.Bool
}

func (c late) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if !c.sees.Load() {
		return blind{}.Get(ctx, key, o, options...)
	}
	return c.Cache.Get(ctx, key, o, options...)
}

// What the server had before the cache says nothing any more once the cache has had it.
func TestAnOwnerThatWasYoungIsGone(t *testing.T) {
	var sees atomic.Bool
	w := given(t, func(o *targets.Options) { o.Cache = late{o.Cache, &sees} })
	owner := w.create(t, fleet, nil)
	pod := w.create(t, pod, owner)
	_, err := w.Owners(t.Context(), w.namespace, pod)
	require.NoError(t, err)
	sees.Store(true)
	_, err = w.Owners(t.Context(), w.namespace, pod)
	require.NoError(t, err)
	require.NoError(t, w.client.Delete(t.Context(), owner))
	await.Until(t, func(check *assert.CollectT) {
		_, err := w.Owners(t.Context(), w.namespace, pod)
		assert.True(check, apierrors.IsNotFound(err))
	})
}

// counted is discovery whose questions are counted.
type counted struct {
	meta.RESTMapper
	asked atomic.Int64
}

func (c *counted) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	c.asked.Add(1)
	return c.RESTMapper.RESTMapping(kind, versions...)
}

func TestAKindThatIsNotServed(t *testing.T) {
	mapper := &counted{}
	w := given(t, func(o *targets.Options) { mapper.RESTMapper = o.Mapper; o.Mapper = mapper })
	pod := w.create(t, pod, nil)
	pod.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Ferry", Name: "web", UID: "1", Controller: new(true)}})
	for range 2 {
		_, err := w.Owners(t.Context(), w.namespace, pod)
		assert.True(t, meta.IsNoMatchError(err), "%v", err)
		require.ErrorContains(t, err, "get Ferry.example.com "+w.namespace+"/web")
	}
	assert.EqualValues(t, 1, mapper.asked.Load())
}

func TestReadsThatAreForbidden(t *testing.T) {
	user := env.User(t, "reader-of-fleets")
	w := given(t, as(t, user))
	pod := w.create(t, pod, w.create(t, fleet, nil))
	forbidden := func() {
		_, err := w.Owners(t.Context(), w.namespace, pod)
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(t, err, "get Fleet.example.com "+w.namespace+"/web")
		_, err = w.List(t.Context(), schema.GroupKind{Group: "example.com", Kind: "Fleet"}, w.namespace)
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
	}
	forbidden()
	asksNothing(t, forbidden)

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader-of-fleets"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"example.com"}, Resources: []string{"fleets"}, Verbs: []string{"get", "list", "watch"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "reader-of-fleets"}},
	}
	require.NoError(t, w.client.Create(t.Context(), role))
	require.NoError(t, w.client.Create(t.Context(), binding))
	await.Until(t, func(check *assert.CollectT) {
		w.clock.SetTime(w.clock.Now().Add(later))
		_, err := w.Owners(t.Context(), w.namespace, pod)
		assert.NoError(check, err)
	}, "what was forbidden is asked for again")

	chain, err := w.Owners(t.Context(), w.namespace, pod)
	require.NoError(t, err)
	all, err := w.List(t.Context(), schema.GroupKind{Group: "example.com", Kind: "Fleet"}, w.namespace)
	require.NoError(t, err)
	assert.Equal(t, []string{"Fleet web"}, names(all))
	scale := func() {
		_, err = w.Replicas(t.Context(), chain[0])
		assert.True(t, apierrors.IsForbidden(err), "%v", err)
		assert.ErrorContains(t, err, "get the scale of Fleet.example.com "+w.namespace+"/web")
	}
	scale()
	asksNothing(t, scale)
}

// hanging is discovery that does not answer while the test runs.
type hanging struct {
	meta.RESTMapper
	ctx   context.Context
	asked atomic.Int64
}

func (h *hanging) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	h.asked.Add(1)
	<-h.ctx.Done()
	return nil, h.ctx.Err()
}

func TestAServerThatHangsHoldsUpOneQuestion(t *testing.T) {
	mapper := &hanging{ctx: t.Context()}
	w := given(t, func(o *targets.Options) { mapper.RESTMapper = o.Mapper; o.Mapper = mapper })
	name := types.NamespacedName{Namespace: w.namespace, Name: "web"}
	_, err := w.Get(t.Context(), schema.GroupKind{Group: "example.com", Kind: "Fleet"}, name)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.Get(gone, schema.GroupKind{Group: "example.com", Kind: "Fleet"}, name)
	require.ErrorIs(t, err, context.DeadlineExceeded, "who asks again is told at once")
	assert.EqualValues(t, 1, mapper.asked.Load())
}

// Where a kind may not be listed, the permission to get scales is enough to know an object and its replicas.
func TestAnObjectIsFoundByItsScale(t *testing.T) {
	const user = "reader-of-scales"
	w := given(t, as(t, env.User(t, user)), func(o *targets.Options) { o.ByScale = true })
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"*"}, Resources: []string{"*/scale"}, Verbs: []string{"get"},
	}}}
	require.NoError(t, w.client.Create(t.Context(), role))
	require.NoError(t, w.client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: user}},
	}))
	owner := w.create(t, fleet, nil)
	pod, other := w.create(t, pod, owner), w.create(t, crew, nil)
	find := func(check require.TestingT) *metav1.PartialObjectMetadata {
		chain, err := w.Owners(t.Context(), w.namespace, pod)
		require.NoError(check, err)
		require.Equal(check, []string{"Fleet web"}, names(chain))
		assert.Equal(check, owner.GetUID(), chain[0].UID)
		return chain[0]
	}
	await.Until(t, func(check *assert.CollectT) { // the server has a cache of roles
		w.clock.SetTime(w.clock.Now().Add(later))
		find(check)
	})
	replicas := func() targets.Replicas {
		got, err := w.Replicas(t.Context(), find(t))
		require.NoError(t, err)
		return got
	}
	asksNothing(t, func() { assert.EqualValues(t, 3, replicas().Spec) })
	w.patch(t, owner, `{"spec":{"replicas":8},"status":{}}`)
	w.clock.SetTime(w.clock.Now().Add(later))
	audit := env.Audit(t)
	assert.EqualValues(t, 8, replicas().Spec)
	asked := audit.Requests(t, "")
	require.NotEmpty(t, asked)
	for _, r := range asked {
		assert.NotEqual(t, "list", r.Verb, "nobody lacks the permission: %s", r)
	}
	assert.False(t, w.Caches(kindOf(owner)))

	_, err := w.Get(t.Context(), kindOf(owner), types.NamespacedName{Namespace: w.namespace, Name: "api"})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = w.Get(t.Context(), kindOf(other), client.ObjectKeyFromObject(other))
	assert.True(t, apierrors.IsForbidden(err), "the kind has no scale: %v", err)
	require.NoError(t, w.client.Delete(t.Context(), owner))
	w.create(t, fleet, nil)
	w.clock.SetTime(w.clock.Now().Add(later))
	_, err = w.Owners(t.Context(), w.namespace, pod)
	assert.True(t, apierrors.IsNotFound(err), "it is another object: %v", err)
}
