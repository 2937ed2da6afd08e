package podcache_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemon/internal/podcache"
)

// stubSize is what a pod that concerns nobody may cost, in bytes: 50,000 of them are to cost next to nothing.
const stubSize = 640

// foreign returns a running pod of a Deployment as the server sends it, of some 5 kB.
func foreign(i int) *corev1.Pod {
	name := fmt.Sprintf("storefront-7d9c6b8f4d-%05d", i)
	pod := gen.Pod(name, gen.Label("app", "storefront"), gen.Label("pod-template-hash", "7d9c6b8f4d"),
		gen.OwnedBy(gen.Pod("storefront-7d9c6b8f4d")), gen.Image("main", "registry.example.com/shop/storefront:1.27.3"),
		gen.Image("proxy", "registry.example.com/mesh/proxy:2.1"), gen.Ready(gen.Epoch()))
	pod.Namespace, pod.UID, pod.ResourceVersion = "shop", types.UID(fmt.Sprintf("0b1d6f0e-7e0a-4d21-9f5c-%012d", i)), fmt.Sprint(90_000_000+i)
	pod.Spec.NodeName = fmt.Sprint("node-", i%1000)
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat(" ", 1500))}}
	for k := range pod.Spec.Containers {
		c := &pod.Spec.Containers[k]
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
		for v := range 12 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("SETTING_", v), Value: "a value of a setting"})
		}
		pod.Status.ContainerStatuses[k].ContainerID = fmt.Sprintf("containerd://%064d", 2*i+k)
	}
	return pod
}

// decoded returns n pods as the client decodes them: no two share a string.
func decoded(tb testing.TB, n int) func(int) *corev1.Pod {
	tb.Helper()
	wire := make([][]byte, n)
	for i := range wire {
		var err error
		wire[i], err = foreign(i).Marshal()
		require.NoError(tb, err)
	}
	return func(i int) *corev1.Pod {
		pod := &corev1.Pod{}
		require.NoError(tb, pod.Unmarshal(wire[i%n]))
		return pod
	}
}

// storeSize returns what the store of an informer takes for each of n foreign pods, in bytes.
func storeSize(tb testing.TB, n int) float64 {
	tb.Helper()
	pod := decoded(tb, n)
	before := inUse()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for i := range n {
		kept, err := podcache.Trim(pod(i))
		require.NoError(tb, err)
		require.NoError(tb, store.Add(kept))
	}
	after := inUse()
	runtime.KeepAlive(store)
	runtime.KeepAlive(pod)
	return float64(after-before) / float64(n)
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestAPodThatConcernsNobodyCostsNextToNothing(t *testing.T) {
	assert.Less(t, storeSize(t, 20_000), float64(stubSize))
}

// BenchmarkForeignPods prints what a pod of others costs: time and garbage of its decoding and trimming, and the
// bytes that stay.
func BenchmarkForeignPods(b *testing.B) {
	pod := decoded(b, 1000)
	wire, err := foreign(0).Marshal()
	require.NoError(b, err)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := podcache.Trim(pod(i)); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(len(wire)), "wire-B/pod")
	b.ReportMetric(storeSize(b, 20_000), "kept-B/pod")
}
