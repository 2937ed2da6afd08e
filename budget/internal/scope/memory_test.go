package scope

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget"
)

// BenchmarkHeapOfPods measures what the cache takes for each pod, with its indexes: pods of a namespace with a budget, and
// pods of others.
func BenchmarkHeapOfPods(b *testing.B) {
	const n = 20_000
	for name, namespace := range map[string]string{"guarded": "shop", "others": "elsewhere"} {
		b.Run(name, func(b *testing.B) {
			var taken uint64
			for b.Loop() {
				taken = heapOf(b, n, namespace) / n
			}
			b.ReportMetric(float64(taken), "B/pod")
		})
	}
}

// heapOf fills the cache, which keeps pods of namespace shop, with so many pods of a namespace.
func heapOf(b *testing.B, n int, namespace string) uint64 {
	b.Helper()
	s := newServer()
	scope := New(clock.RealClock{})
	scope.From(Source{Namespaces: func(context.Context, func(string)) ([]string, error) { return []string{"shop"}, nil }})
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	informer := scope.Limit(fastclient.CacheOptions("", nil).NewInformer)(s.listWatch(), &corev1.Pod{}, time.Hour, toolscache.Indexers{
		toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc,
	})
	require.NoError(b, informer.SetTransform(podunavailablebudget.Pods("").Transform))
	require.NoError(b, cover.AddIndexes(ctx, indexer{informer}))
	before := heap()
	for i := range n {
		s.version++
		pod := podOf(i, namespace)
		pod.ResourceVersion = fmt.Sprint(s.version)
		s.pods[pod.Name] = pod
	}
	go informer.RunWithContext(ctx)
	require.True(b, toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	require.Len(b, informer.GetStore().ListKeys(), map[string]int{"shop": n}[namespace])
	s.pods = nil
	scope.prune()
	after := heap()
	runtime.KeepAlive(informer)
	return max(after, before) - before
}

func heap() uint64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// podOf is a pod as the API server has it, of a ReplicaSet with ten pods.
func podOf(i int, namespace string) *corev1.Pod {
	app := fmt.Sprint("app-", i/10)
	pod := gen.Pod(fmt.Sprintf("%s-5d8f7c9b6-%05d", app, i), gen.Namespaced(namespace), gen.Ready(gen.Epoch()))
	pod.UID = types.UID(fmt.Sprintf("%08d-1111-2222-3333-444455556666", i))
	pod.Labels = map[string]string{"app.kubernetes.io/name": app, "app.kubernetes.io/component": "server", "pod-template-hash": "5d8f7c9b6"}
	pod.Annotations = map[string]string{"example.io/checksum": fmt.Sprintf("%064d", i)}
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-5d8f7c9b6", UID: types.UID("uid-of-" + app), Controller: new(true), BlockOwnerDeletion: new(true),
	}}
	pod.Spec.NodeName, pod.Spec.RestartPolicy = fmt.Sprint("node-", i%100), corev1.RestartPolicyAlways
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.example.io/app:1", Env: make([]corev1.EnvVar, 20)}}
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
