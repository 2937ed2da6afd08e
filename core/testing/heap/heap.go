// Package heap measures what an operator's cache of pods takes. It is imported by benchmarks only.
package heap

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/scope"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// Kept is the namespace whose pods are cached.
const Kept = "shop"

// Cache is how an operator caches pods.
type Cache struct {
	Transform toolscache.TransformFunc
	// Indexes adds the indexes.
	Indexes func(context.Context, client.FieldIndexer) error
}

// Of returns how many bytes the cache takes for each of so many pods of a namespace. It keeps those of namespace Kept.
func (c Cache) Of(b *testing.B, n int, namespace string) uint64 {
	b.Helper()
	pods := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(n)}}
	server := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (kruntime.Object, error) { return pods, nil },
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "", nil) // it cannot list in a watch
			}
			return watch.NewRaceFreeFake(), nil
		},
	}
	part := scope.New(clock.RealClock{})
	part.From(scope.Source{Namespaces: func(context.Context, func(string)) ([]string, error) { return []string{Kept}, nil }})
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	informer := part.Limit(fastclient.CacheOptions("", nil).NewInformer)(server, &corev1.Pod{}, time.Hour, toolscache.Indexers{
		toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
	})
	require.NoError(b, informer.SetTransform(c.Transform))
	require.NoError(b, c.Indexes(ctx, indexer{informer}))
	before := size()
	for i := range n {
		pod := podOf(i, namespace)
		pod.ResourceVersion = fmt.Sprint(i + 1)
		pods.Items = append(pods.Items, *pod)
	}
	go informer.RunWithContext(ctx)
	require.True(b, toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	require.Len(b, informer.GetStore().ListKeys(), map[string]int{Kept: n}[namespace])
	pods = nil
	require.True(b, part.Complete(Kept))
	after := size()
	runtime.KeepAlive(informer)
	return (max(after, before) - before) / uint64(n)
}

func size() uint64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Benchmark measures what the cache takes for each pod of a namespace that it keeps, and for each pod of others.
func (c Cache) Benchmark(b *testing.B) {
	for name, namespace := range map[string]string{"kept": Kept, "others": "elsewhere"} {
		b.Run(name, func(b *testing.B) {
			var taken uint64
			for b.Loop() {
				taken = c.Of(b, 20_000, namespace)
			}
			b.ReportMetric(float64(taken), "B/pod")
		})
	}
}

// podOf is a pod as the API server has it, of a ReplicaSet with ten pods.
func podOf(i int, namespace string) *corev1.Pod {
	app := fmt.Sprint("app-", i/10)
	pod := gen.Pod(fmt.Sprintf("%s-5d8f7c9b6-%05d", app, i), gen.Namespaced(namespace), gen.Ready(gen.Epoch()))
	pod.UID = types.UID(fmt.Sprintf("%08d-1111-2222-3333-444455556666", i))
	pod.Labels = map[string]string{
		"app.kubernetes.io/name":      app,
		"app.kubernetes.io/component": "server",
		"pod-template-hash":           "5d8f7c9b6",
	}
	pod.Annotations = map[string]string{"example.io/checksum": fmt.Sprintf("%064d", i)}
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion:         "apps/v1",
		Kind:               "ReplicaSet",
		Name:               app + "-5d8f7c9b6",
		UID:                types.UID("uid-of-" + app),
		Controller:         new(true),
		BlockOwnerDeletion: new(true),
	}}
	pod.Spec.NodeName = fmt.Sprint("node-", i%100)
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	pod.Spec.Containers = []corev1.Container{{
		Name:  "main",
		Image: "registry.example.io/app:1",
		Env:   make([]corev1.EnvVar, 20),
	}}
	return pod
}

// indexer adds indexes in the form in which controller-runtime keeps them.
type indexer struct{ toolscache.SharedIndexInformer }

// IndexField is part of client.FieldIndexer.
func (i indexer) IndexField(_ context.Context, _ client.Object, field string, extract client.IndexerFunc) error {
	return i.AddIndexers(toolscache.Indexers{"field:" + field: func(o any) ([]string, error) {
		object := o.(client.Object)
		var keys []string
		for _, value := range extract(object) {
			keys = append(keys, object.GetNamespace()+"/"+value, "__all_namespaces/"+value)
		}
		return keys, nil
	}})
}
