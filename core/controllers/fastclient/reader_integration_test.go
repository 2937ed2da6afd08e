package fastclient_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) { env.Run(m, testenv.Options{}) }

// started makes a manager whose pod cache is the one under test, limited to the namespaces if any
// are given.
func started(t *testing.T, namespaces ...string) manager.Manager {
	t.Helper()
	pods := fastclient.PodsWithLabel(contract.InstanceIDLabel)
	mgr := env.Manager(t, func(o *manager.Options) {
		o.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Pod{}: pods}
		for _, ns := range namespaces {
			if o.Cache.DefaultNamespaces == nil {
				o.Cache.DefaultNamespaces = map[string]cache.Config{}
			}
			o.Cache.DefaultNamespaces[ns] = cache.Config{}
		}
	})
	require.NoError(t, fastclient.IndexOwners(t.Context(), mgr.GetFieldIndexer(), &corev1.Pod{}))
	env.Start(t, mgr)
	return mgr
}

func pod(namespace, name string, owners ...types.UID) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels:      map[string]string{contract.InstanceIDLabel: name},
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "kept": "yes"},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-of-" + name,
			Containers: []corev1.Container{{
				Name: "main", Image: "image:1", Command: []string{"run"},
				Env: []corev1.EnvVar{{Name: "PLAIN", Value: "x"}, {Name: contract.ContainerPriorityEnv, Value: "1"}},
			}},
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: contract.InPlaceUpdateReady}},
		},
	}
	for i, uid := range owners {
		p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "owner-" + string(uid), UID: uid, Controller: new(i == 0),
		})
	}
	return p
}

func names(pods []*corev1.Pod) []string {
	var list []string
	for _, p := range pods {
		list = append(list, p.Name)
	}
	return list
}

// What a transform has left of an object is no object of the type.
func TestReadsDoNotFindWhatATransformHasReplaced(t *testing.T) {
	ns := env.Namespace(t)
	c := env.Client(t)
	require.NoError(t, c.Create(t.Context(), pod(ns, "whole")))
	require.NoError(t, c.Create(t.Context(), pod(ns, "stub")))
	mgr := env.Manager(t, func(o *manager.Options) {
		o.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: func(object any) (any, error) {
			if p, ok := object.(*corev1.Pod); ok && p.Name == "stub" {
				return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}, nil
			}
			return object, nil
		}}}
	})
	env.Start(t, mgr)
	reader := fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), fastclient.Options{})
	all, err := fastclient.All[corev1.Pod](t.Context(), reader, ns)
	require.NoError(t, err)
	assert.Equal(t, []string{"whole"}, names(all))
	_, err = fastclient.Get[corev1.Pod](t.Context(), reader, types.NamespacedName{Namespace: ns, Name: "stub"})
	assert.True(t, apierrors.IsNotFound(err), "got %v", err)
}

func TestEditsAreSeenInTheCache(t *testing.T) {
	ns := env.Namespace(t)
	c := env.Client(t)
	labels := map[string]string{"app": "web"}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: appsv1.ReplicaSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod(ns, "web").Spec},
	}}
	require.NoError(t, c.Create(t.Context(), set))
	mgr := env.Manager(t, func(*manager.Options) {})
	env.Start(t, mgr)
	reader := fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), fastclient.Options{})
	assert.False(t, reader.Edited(set), "nothing is known of a kind that was never read")
	_, err := fastclient.Get[appsv1.ReplicaSet](t.Context(), reader, client.ObjectKeyFromObject(set))
	require.NoError(t, err)
	assert.False(t, reader.Edited(set))

	planned := set.DeepCopy()
	set.Status.Replicas, set.Annotations = 3, map[string]string{"note": "x"}
	require.NoError(t, c.Update(t.Context(), set))
	await.Until(t, func(c *assert.CollectT) {
		shown, err := fastclient.Get[appsv1.ReplicaSet](t.Context(), reader, client.ObjectKeyFromObject(set))
		require.NoError(c, err)
		assert.Equal(c, set.ResourceVersion, shown.ResourceVersion)
	})
	assert.False(t, reader.Edited(planned), "an annotation is not part of the spec")

	set.Spec.MinReadySeconds = 5
	require.NoError(t, c.Update(t.Context(), set))
	await.Until(t, func(c *assert.CollectT) { assert.True(c, reader.Edited(planned)) })
	planned = set.DeepCopy()
	assert.False(t, reader.Edited(planned))

	require.NoError(t, c.Delete(t.Context(), set))
	await.Until(t, func(c *assert.CollectT) { assert.True(c, reader.Edited(planned)) })
}

func TestOwnedFindsWhatAListByTheIndexFinds(t *testing.T) {
	ns, other := env.Namespace(t), env.Namespace(t)
	c := env.Client(t)
	ownerA, ownerB := types.UID(ns+"-a"), types.UID(ns+"-b")
	unlabelled := pod(ns, "unlabelled", ownerA)
	unlabelled.Labels = nil
	for _, p := range []*corev1.Pod{
		pod(ns, "one", ownerA), pod(ns, "two", ownerB, ownerA), pod(ns, "three", ownerB), pod(ns, "orphan"), pod(other, "elsewhere", ownerA), unlabelled,
	} {
		require.NoError(t, c.Create(t.Context(), p))
	}
	for name, namespaces := range map[string][]string{"cluster": nil, "namespaced": {ns, other}} {
		t.Run(name, func(t *testing.T) {
			mgr := started(t, namespaces...)
			reader := fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), fastclient.Options{})

			owned, err := fastclient.Owned[corev1.Pod](t.Context(), reader, ns, ownerA)
			require.NoError(t, err)
			assert.ElementsMatch(t, []string{"one", "two"}, names(owned))
			everywhere, err := fastclient.Owned[corev1.Pod](t.Context(), reader, "", ownerA)
			require.NoError(t, err)
			assert.ElementsMatch(t, []string{"one", "two", "elsewhere"}, names(everywhere))
			found, err := fastclient.ByIndex[corev1.Pod](t.Context(), reader, ns, fastclient.OwnerIndex, string(ownerB))
			require.NoError(t, err)
			assert.ElementsMatch(t, []string{"two", "three"}, names(found))
			all, err := fastclient.All[corev1.Pod](t.Context(), reader, other)
			require.NoError(t, err)
			assert.Equal(t, []string{"elsewhere"}, names(all))
			one, err := fastclient.Get[corev1.Pod](t.Context(), reader, types.NamespacedName{Namespace: ns, Name: "one"})
			require.NoError(t, err)
			assert.Equal(t, "one", one.Name)
			_, err = fastclient.Get[corev1.Pod](t.Context(), reader, types.NamespacedName{Namespace: ns, Name: "none"})
			assert.True(t, apierrors.IsNotFound(err), "got %v", err)

			var list corev1.PodList
			require.NoError(t, mgr.GetClient().List(t.Context(), &list, client.InNamespace(ns),
				client.MatchingFields{fastclient.OwnerIndex: string(ownerA)}, client.UnsafeDisableDeepCopy))
			assert.Len(t, list.Items, 2, "controller-runtime keeps its indexes in another form than assumed")
		})
	}
}

func TestReaderSharesPointersUnlessToldToCopy(t *testing.T) {
	ns := env.Namespace(t)
	require.NoError(t, env.Client(t).Create(t.Context(), pod(ns, "one", "a")))
	mgr := started(t)
	twice := func(o fastclient.Options) (*corev1.Pod, *corev1.Pod) {
		reader := fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), o)
		first, err := fastclient.Owned[corev1.Pod](t.Context(), reader, ns, "a")
		require.NoError(t, err)
		second, err := fastclient.Owned[corev1.Pod](t.Context(), reader, ns, "a")
		require.NoError(t, err)
		require.Len(t, first, 1)
		require.Len(t, second, 1)
		return first[0], second[0]
	}
	first, second := twice(fastclient.Options{})
	assert.Same(t, first, second)
	first, second = twice(fastclient.Options{Copy: true})
	assert.NotSame(t, first, second)
}

func TestPodsAreTrimmed(t *testing.T) {
	ns := env.Namespace(t)
	require.NoError(t, env.Client(t).Create(t.Context(), pod(ns, "one", "a")))
	mgr := started(t)
	reader := fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), fastclient.Options{})
	one, err := fastclient.Get[corev1.Pod](t.Context(), reader, types.NamespacedName{Namespace: ns, Name: "one"})
	require.NoError(t, err)

	assert.Empty(t, one.ManagedFields)
	assert.Equal(t, map[string]string{"kept": "yes"}, one.Annotations)
	assert.NotEmpty(t, one.ResourceVersion)
	assert.Equal(t, "node-of-one", one.Spec.NodeName)
	assert.Len(t, one.Spec.ReadinessGates, 1)
	main := one.Spec.Containers[0]
	assert.Equal(t, "image:1", main.Image)
	assert.Empty(t, main.Command)
	assert.Equal(t, []corev1.EnvVar{{Name: contract.ContainerPriorityEnv, Value: "1"}}, main.Env)
}

func TestDetectorTellsOfChangedObjects(t *testing.T) {
	var detector fastclient.Detector
	touched, untouched := pod("ns", "touched"), pod("ns", "untouched")
	detector.Observe(touched)
	detector.Observe(untouched)
	var quiet recorder
	detector.Check(&quiet)
	require.Empty(t, quiet.errors)

	touched.Labels["x"] = "y"
	var loud recorder
	detector.Check(&loud)
	require.Len(t, loud.errors, 1)
	assert.Contains(t, loud.errors[0], "ns/touched")
}

func TestRevisionsOfOthersLoseTheirData(t *testing.T) {
	transform := fastclient.Revisions(contract.AppsGroup).Transform
	for apiVersion, kept := range map[string]bool{contract.AppsGroup + "/v1alpha1": true, "apps/v1": false, "": true} {
		r := &appsv1.ControllerRevision{Revision: 3}
		r.Data.Raw = []byte("{}")
		if apiVersion != "" {
			r.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Controller: new(true)}}
		}
		got, err := transform(r)
		require.NoError(t, err)
		assert.Equal(t, kept, got.(*appsv1.ControllerRevision).Data.Raw != nil, "owner %q", apiVersion)
	}
}

func TestNewClientHasItsUserAgent(t *testing.T) {
	ns := env.Namespace(t)
	mgr := env.Manager(t)
	audit := env.Audit(t)
	c, err := fastclient.NewClient(mgr, "feature-manager/kind")
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), pod(ns, "one")))
	assert.Equal(t, map[string]int{"create pods": 1}, audit.Writes(t, "feature-manager/kind"))
}

func BenchmarkOwned(b *testing.B) {
	ns := env.Namespace(b)
	const pods = 300
	for i := range pods {
		require.NoError(b, env.Client(b).Create(b.Context(), pod(ns, "pod-"+strconv.Itoa(i), "a")))
	}
	mgr := env.Manager(b)
	require.NoError(b, fastclient.IndexOwners(b.Context(), mgr.GetFieldIndexer(), &corev1.Pod{}))
	env.Start(b, mgr)
	reader := fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), fastclient.Options{})
	b.Run("pointers", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			owned, err := fastclient.Owned[corev1.Pod](b.Context(), reader, ns, "a")
			require.NoError(b, err)
			require.Len(b, owned, pods)
		}
	})
	b.Run("list", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var list corev1.PodList
			require.NoError(b, mgr.GetClient().List(b.Context(), &list, client.InNamespace(ns),
				client.MatchingFields{fastclient.OwnerIndex: "a"}, client.UnsafeDisableDeepCopy))
			require.Len(b, list.Items, pods)
		}
	})
}

type recorder struct{ errors []string }

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestPodsOfOthersAreNoMoreThanNames(t *testing.T) {
	pods := fastclient.PodsOf("name", schema.GroupKind{Group: "apps.kruise.io", Kind: "StatefulSet"})
	trimmed := func(apiVersion, kind string) *corev1.Pod {
		o := pod("shop", "web-1")
		o.Labels["name"] = "web-1"
		if apiVersion != "" {
			o.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "web", UID: "web", Controller: new(true)}}
		}
		object, err := pods.Transform(o)
		require.NoError(t, err)
		return object.(*corev1.Pod)
	}
	assert.NotEmpty(t, trimmed("apps.kruise.io/v1alpha1", "StatefulSet").Spec.Containers)
	assert.NotEmpty(t, trimmed("", "").Spec.Containers, "nobody owns it")
	for _, foreign := range []*corev1.Pod{trimmed("apps/v1", "StatefulSet"), trimmed("apps.kruise.io/v1beta1", "CloneSet")} {
		assert.Empty(t, foreign.Spec.Containers)
		assert.Empty(t, foreign.Labels)
		assert.Equal(t, "web-1", foreign.Name)
		assert.Equal(t, "web", foreign.OwnerReferences[0].Name)
	}
}
