package ledger_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/ledger"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{CRDs: []string{"../../config/crd/podunavailablebudgets.yaml"}, Scheme: testenv.Scheme(v1beta1.AddToScheme)})
}

// givenBudget makes a budget with these numbers.
func givenBudget(t testing.TB, current, desired int32) *v1beta1.PodUnavailableBudget {
	t.Helper()
	c := env.Client(t)
	b := &v1beta1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "web"}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	b.Spec.MaxUnavailable = new(intstr.FromInt32(current - desired))
	require.NoError(t, c.Create(t.Context(), b))
	return count(t, b, current, desired)
}

// count writes the numbers, as the controller does.
func count(t testing.TB, b *v1beta1.PodUnavailableBudget, current, desired int32) *v1beta1.PodUnavailableBudget {
	t.Helper()
	b = b.DeepCopy()
	b.Status.ObservedGeneration, b.Status.TotalReplicas = b.Generation, current
	b.Status.CurrentAvailable, b.Status.DesiredAvailable, b.Status.UnavailableAllowed = current, desired, current-desired
	require.NoError(t, env.Client(t).Status().Update(t.Context(), b))
	return b
}

func newLedger(t testing.TB, agent string) *ledger.Ledger {
	t.Helper()
	c := env.ClientAs(t, agent)
	return &ledger.Ledger{Client: c, Live: c, Clock: clock.RealClock{}}
}

func pod(i int) *corev1.Pod {
	p := gen.Pod(fmt.Sprint("web-", i), gen.Ready(gen.Epoch()))
	p.UID = types.UID(fmt.Sprint("uid-", i))
	return p
}

// askAll asks about n pods at once, in turn one of the ledgers, and returns which were granted and how long that took.
func askAll(t *testing.T, b *v1beta1.PodUnavailableBudget, n int, ledgers ...*ledger.Ledger) (granted []string, took []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	begun := time.Now()
	for i := range n {
		all.Go(func() {
			why, err := ledgers[i%len(ledgers)].Ask(context.Background(), b.DeepCopy(), disruption.Request{Pod: pod(i), Operation: v1beta1.EvictOperation})
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(begun))
			if assert.NoError(t, err) && why == "" {
				granted = append(granted, fmt.Sprint("web-", i))
			}
		})
	}
	all.Wait()
	slices.Sort(granted)
	slices.Sort(took)
	return granted, took
}

func stored(t *testing.T, b *v1beta1.PodUnavailableBudget) []string {
	t.Helper()
	require.NoError(t, env.Client(t).Get(t.Context(), client.ObjectKeyFromObject(b), b))
	var names []string
	for _, g := range disruption.Grants(&b.Status) {
		names = append(names, g.Pod)
	}
	slices.Sort(names)
	return names
}

// Two hundred requests at once are granted as far as the budget goes, with a few writes instead of one for each.
func TestRequestsShareWrites(t *testing.T) {
	env.Need(t)
	for _, n := range []int{1, 50, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := givenBudget(t, 1000, int32(1000-(n+1)/2)) //nolint:gosec // it is small
			agent := fmt.Sprint("ledger-", n)
			one := newLedger(t, agent)
			audit := env.Audit(t)
			granted, took := askAll(t, b, n, one)
			assert.Len(t, granted, (n+1)/2)
			assert.Equal(t, granted, stored(t, b), "what was answered is what is recorded")
			writes := audit.Requests(t, agent)
			assert.LessOrEqual(t, len(writes), max(1, n/4), "writes")
			t.Logf("%d requests: %d writes, median %s, slowest %s", n, len(writes), took[n/2], took[n-1])
		})
	}
}

// Two replicas grant at the same time. Both together grant no more than there is, and each grant is recorded.
func TestReplicasShareTheBudget(t *testing.T) {
	env.Need(t)
	b := givenBudget(t, 100, 60)
	granted, _ := askAll(t, b, 100, newLedger(t, "replica-1"), newLedger(t, "replica-2"))
	assert.Len(t, granted, 40)
	assert.Equal(t, granted, stored(t, b))
}

// What the cache shows may be old: nothing is let go for it.
func TestOldNewsLetNothingGo(t *testing.T) {
	env.Need(t)
	l := newLedger(t, "old-news")
	scaledToZero := givenBudget(t, 3, 0)
	count(t, scaledToZero, 3, 3)
	why, err := l.Ask(t.Context(), scaledToZero, disruption.Request{Pod: pod(1), Operation: v1beta1.DeleteOperation})
	require.NoError(t, err)
	assert.Contains(t, why, "3 available, 3 required")

	hadRoom := givenBudget(t, 3, 2)
	count(t, hadRoom, 3, 3)
	why, err = l.Ask(t.Context(), hadRoom, disruption.Request{Pod: pod(1), Operation: v1beta1.DeleteOperation})
	require.NoError(t, err)
	assert.Contains(t, why, "3 available, 3 required")

	gone := givenBudget(t, 3, 3)
	gone.Status.DesiredAvailable = 2
	require.NoError(t, env.Client(t).Delete(t.Context(), gone.DeepCopy()))
	why, err = l.Ask(t.Context(), gone, disruption.Request{Pod: pod(1), Operation: v1beta1.DeleteOperation})
	require.NoError(t, err)
	assert.Empty(t, why, "nobody protects the pod any more")
}

// A second request for a pod costs nothing for as long as the first one is fresh, and is never charged.
func TestAGrantCoversFurtherRequests(t *testing.T) {
	env.Need(t)
	b := givenBudget(t, 3, 2)
	l := newLedger(t, "again")
	audit := env.Audit(t)
	for range 3 {
		why, err := l.Ask(t.Context(), b, disruption.Request{Pod: pod(1), Operation: v1beta1.UpdateOperation})
		require.NoError(t, err)
		assert.Empty(t, why)
	}
	assert.Len(t, audit.Requests(t, "again"), 1)
	why, err := l.Ask(t.Context(), b, disruption.Request{Pod: pod(1), Operation: v1beta1.DeleteOperation})
	require.NoError(t, err)
	assert.Empty(t, why)
	assert.Equal(t, []string{"web-1", "web-1"}, stored(t, b))
	assert.EqualValues(t, 2, b.Status.CurrentAvailable)
	for _, request := range audit.Requests(t, "again") {
		assert.Equal(t, http.StatusOK, request.Response.Code)
	}
}
