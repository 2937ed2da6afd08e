package setup

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/load"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/budget/internal/cover"
)

// BenchmarkSteadyEvictions measures how long each of 50 and of 200 evictions a second takes, for some seconds: of pods of one
// budget, which grants all or none of them, with so many replicas of the webhook, and with one whose requests to the API
// server take 100 ms longer; beside them, in turn, of pods for which no webhook is called, and for which one is called that
// allows all.
func BenchmarkSteadyEvictions(b *testing.B) {
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
				const seconds = 3
				ways := []load.Way{{Name: "bare"}, {Name: "no-op"}, {Name: "granted"}, {Name: "refused"}}
				for b.Loop() {
					for i := range ways {
						ways[i].Request = evictions(b, givenApp(b, server, 0), ways[i].Name, seconds*perSecond)
					}
					load.InTurn(b, perSecond, seconds, ways)
				}
				load.Compare(b, ways)
			})
		}
	}
}

// evictions makes pods, and returns what evicts each of them in one of the ways.
func evictions(b *testing.B, a *app, way string, n int) func(i int) error {
	b.Helper()
	a.addPods(b, n+1) // one stays: a budget that lets all be unavailable protects nothing
	switch way {
	case "no-op":
		env.AllowPods(b, a.namespace)
	case "granted":
		a.guard(b, int32(n)) //nolint:gosec // it is small
	case "refused":
		a.guard(b, 0)
	}
	return func(i int) error {
		for {
			err := a.evict(b, a.pods[i])
			switch {
			case way == "refused" && apierrors.IsTooManyRequests(err):
				return nil
			case !apierrors.IsTooManyRequests(err): // else it is tried again, as drains do
				return err
			}
		}
	}
}

// addPods makes so many ready pods at the same time, of a Deployment that wants them.
func (a *app) addPods(b *testing.B, n int, changes ...func(*corev1.Pod)) {
	b.Helper()
	deployment := a.deployment(b)
	deployment.Spec.Replicas = new(int32(n)) //nolint:gosec // it is small
	require.NoError(b, a.Update(b.Context(), deployment))
	const together = 20
	a.pods = make([]*corev1.Pod, n)
	var all sync.WaitGroup
	for worker := range together {
		all.Go(func() {
			for i := worker; i < n; i += together {
				pod := a.newPod(i)
				for _, change := range changes {
					change(pod)
				}
				if err := a.Create(b.Context(), pod); err != nil {
					b.Error(err)
					return
				}
				a.setReady(b, pod, corev1.ConditionTrue)
				a.pods[i] = pod
			}
		})
	}
	all.Wait()
	require.False(b, b.Failed())
}

// guard makes a budget that lets so many pods be unavailable, and waits until it counts.
func (a *app) guard(b *testing.B, unavailable int32) {
	b.Helper()
	budget := newBudget(a.namespace)
	budget.Spec.MaxUnavailable = new(intstr.FromInt32(unavailable))
	require.NoError(b, a.Create(b.Context(), budget))
	await.Until(b, func(check *assert.CollectT) {
		assert.EqualValues(check, len(a.pods), a.numbers(check, budget)[2])
		marked := &corev1.PodList{}
		require.NoError(check, a.List(b.Context(), marked, client.InNamespace(a.namespace)))
		for i := range marked.Items {
			require.Equal(check, budget.Name, cover.Mark(&marked.Items[i]))
		}
	})
	a.guarded(b, a.pods[0])
}
