package setup

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BenchmarkPodCreations measures how long so many creations of pods at once take, from the request to the API server's
// answer: pods of one spread, each of which takes a place; pods of one whose only subset has no limit, so that there are no
// places; and pods of a namespace for which no webhook is called.
func BenchmarkPodCreations(b *testing.B) {
	c := serve(b)
	for _, n := range []int{1, 50, 200} {
		b.Run(fmt.Sprintf("places/%d", n), func(b *testing.B) {
			measure(b, c, n, "a", func(owner *appsv1.ReplicaSet) {
				s := newSpread(owner.Namespace, intstr.FromInt(n))
				require.NoError(b, c.Create(b.Context(), s))
				settled(b, c, s, fmt.Sprintf("0/%d 0/-1", n))
			})
		})
		b.Run(fmt.Sprintf("unlimited/%d", n), func(b *testing.B) {
			measure(b, c, n, "b", func(owner *appsv1.ReplicaSet) {
				s := newSpread(owner.Namespace, intstr.FromInt(n))
				s.Spec.Subsets = s.Spec.Subsets[1:]
				require.NoError(b, c.Create(b.Context(), s))
			})
		})
		b.Run(fmt.Sprintf("alone/%d", n), func(b *testing.B) {
			measure(b, c, n, "", func(*appsv1.ReplicaSet) {})
		})
	}
}

// measure creates n pods at once, each round in a new namespace.
func measure(b *testing.B, c client.Client, n int, subset string, prepare func(*appsv1.ReplicaSet)) {
	b.Helper()
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		owner := newReplicaSet(env.Namespace(b), int32(n))
		require.NoError(b, c.Create(b.Context(), owner))
		prepare(owner)
		first := podOf(owner) // the API server is slow with the first pod of a new namespace
		first.OwnerReferences = nil
		require.NoError(b, c.Create(b.Context(), first))
		pods, errs, rounds := make([]*corev1.Pod, n), make([]error, n), make([]time.Duration, n)
		for i := range pods {
			pods[i] = podOf(owner)
		}
		var all sync.WaitGroup
		b.StartTimer()
		begun := time.Now()
		for i := range pods {
			all.Go(func() {
				errs[i] = c.Create(b.Context(), pods[i])
				rounds[i] = time.Since(begun)
			})
		}
		all.Wait()
		b.StopTimer()
		for i := range pods {
			require.NoError(b, errs[i])
			require.Equal(b, subset, subsetOf(pods[i]))
		}
		took = append(took, rounds...)
		b.StartTimer()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
