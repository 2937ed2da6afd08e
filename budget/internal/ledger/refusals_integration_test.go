package ledger_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/ledger"
)

// Whatever the server answers to the writes of a ledger, it hears of few of the requests that want one, and nothing is
// granted meanwhile; what needs no write is answered as ever. What was wanted is granted soon after.
func TestARefusedLedgerIsQuiet(t *testing.T) {
	env.Need(t)
	faults.EachRefusal(t, func(t *testing.T, server *faults.Refusing) {
		t.Helper()
		server.For = 5 * time.Second
		server.Of = func(r *http.Request) bool {
			return faults.IsWrite(r) && strings.Contains(r.URL.Path, "/podunavailablebudgets/")
		}
		config := faults.Wrapped(env.ConfigAs(t, "refused"), server.Send)
		fastclient.WriteOnce(config)
		c, err := client.New(config, client.Options{Scheme: env.Scheme})
		require.NoError(t, err)
		l := &ledger.Ledger{Client: c, Live: c, Clock: clock.RealClock{}}
		b, full := givenBudget(t, 100, 90), givenBudget(t, 100, 100)
		ask := func(b *v1beta1.PodUnavailableBudget, i int) (string, error) {
			return l.Ask(context.WithoutCancel(t.Context()), b.DeepCopy(), disruption.Request{Pod: pod(i), Operation: v1beta1.EvictOperation})
		}
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for {
					_, err := ask(b, i)
					if server.Over() {
						return
					}
					if err == nil {
						t.Error("nobody knows whether it is recorded")
					}
					<-time.After(20 * time.Millisecond)
				}
			})
		}
		all.Wait()
		why, err := ask(full, 1)
		require.NoError(t, err)
		assert.Contains(t, why, "100 available, 100 required")
		await.Until(t, func(check *assert.CollectT) {
			why, err := ask(b, 1)
			require.NoError(check, err)
			assert.Empty(check, why)
		})
		assert.Contains(t, stored(t, b), "web-1")
		assert.Equal(t, 1, server.AssertQuiet(t, 3))
	})
}
