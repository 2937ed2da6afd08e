package ledger_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/load"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/ledger"
)

// BenchmarkGrants measures how long so many requests at once about one budget take, from the question to the recorded
// answer: with shared writes, and with one write for each request, one after the other.
func BenchmarkGrants(b *testing.B) {
	env.Need(b)
	for _, n := range []int{1, 50, 200} {
		b.Run(fmt.Sprintf("shared/%d", n), func(b *testing.B) {
			l := newLedger(b, "bench")
			measure(b, n, func(pub *v1beta1.PodUnavailableBudget, i int) error { return grant(b, l, pub, i) })
		})
		b.Run(fmt.Sprintf("apart/%d", n), func(b *testing.B) {
			l := newLedger(b, "bench")
			var mu sync.Mutex
			measure(b, n, func(pub *v1beta1.PodUnavailableBudget, i int) error {
				mu.Lock()
				defer mu.Unlock()
				return grant(b, l, pub, i)
			})
		})
	}
}

func grant(b *testing.B, l *ledger.Ledger, pub *v1beta1.PodUnavailableBudget, i int) error {
	b.Helper()
	why, err := l.Ask(b.Context(), pub, disruption.Request{Pod: pod(i), Operation: v1beta1.EvictOperation})
	if err == nil && why != "" {
		err = fmt.Errorf("refused: %s", why)
	}
	return err
}

// measure has n requests granted at once, each round by a new budget.
func measure(b *testing.B, n int, ask func(pub *v1beta1.PodUnavailableBudget, i int) error) {
	b.Helper()
	var took load.Times
	for b.Loop() {
		b.StopTimer()
		pub := givenBudget(b, 1000, 0)
		pub.Status.DesiredAvailable = 1
		require.NoError(b, env.Client(b).Status().Update(b.Context(), pub))
		rounds := make([]time.Duration, n)
		errs := make([]error, n)
		var all sync.WaitGroup
		b.StartTimer()
		begun := time.Now()
		for i := range n {
			all.Go(func() {
				errs[i] = ask(pub.DeepCopy(), i)
				rounds[i] = time.Since(begun)
			})
		}
		all.Wait()
		b.StopTimer()
		for _, err := range errs {
			require.NoError(b, err)
		}
		took = append(took, rounds...)
		require.NoError(b, env.Client(b).Delete(b.Context(), pub, client.GracePeriodSeconds(0)))
		b.StartTimer()
	}
	took.Report(b)
}
