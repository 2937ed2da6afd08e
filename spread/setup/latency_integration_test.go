package setup

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/load"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"
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
	var took load.Times
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
	took.Report(b)
}

// BenchmarkSteadyCreations measures how long each of 50 and of 200 creations a second takes, for five seconds: of pods of which
// most take a place in a spread, with so many replicas of the webhook, and with one whose requests to the API server take
// 100 ms longer; beside them, in turn, of pods for which no webhook is called, and for which one is called that allows all.
func BenchmarkSteadyCreations(b *testing.B) {
	env.Need(b)
	for _, c := range []struct {
		name     string
		replicas int
		over     testenv.Environment
	}{
		{"1-replica", 1, env}, {"3-replicas", 3, env}, {"slow-server", 1, faults.Over(env, faults.Slow(100*time.Millisecond))},
	} {
		for _, perSecond := range []int{50, 200} {
			b.Run(fmt.Sprintf("%s/%d-a-second", c.name, perSecond), func(b *testing.B) {
				server := servedBy(b, c.replicas, c.over)
				const seconds = 5
				ways := []load.Way{{Name: "bare"}, {Name: "no-op"}, {Name: "spread"}}
				placed := 0
				for b.Loop() {
					pods := make([][]*corev1.Pod, len(ways))
					for i := range ways {
						pods[i] = make([]*corev1.Pod, seconds*perSecond)
						owner := givenWay(b, server, ways[i].Name, len(pods[i]))
						ways[i].Request = func(n int) error {
							pods[i][n] = podOf(owner)
							return server.Create(b.Context(), pods[i][n])
						}
					}
					load.InTurn(b, perSecond, seconds, ways)
					for _, pod := range pods[2] {
						if subsetOf(pod) != "" {
							placed++
						}
					}
				}
				load.Compare(b, ways)
				b.ReportMetric(float64(placed)/float64(len(ways[2].Times)), "placed/spread") // the others have not waited for the webhook any longer
			})
		}
	}
}

// givenWay returns a ReplicaSet whose pods are created in one of the ways.
func givenWay(b *testing.B, c client.Client, way string, n int) *appsv1.ReplicaSet {
	b.Helper()
	owner := newReplicaSet(env.Namespace(b), int32(n)) //nolint:gosec // it is small
	require.NoError(b, c.Create(b.Context(), owner))
	switch way {
	case "no-op":
		env.AllowPods(b, owner.Namespace)
	case "spread":
		s := newSpread(owner.Namespace, intstr.FromInt(n*9/10))
		require.NoError(b, c.Create(b.Context(), s))
		settled(b, c, s, fmt.Sprintf("0/%d 0/-1", n*9/10))
	}
	first := podOf(owner) // the API server is slow with the first pod of a new namespace
	first.OwnerReferences = nil
	require.NoError(b, c.Create(b.Context(), first))
	return owner
}
