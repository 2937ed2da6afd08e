package podunavailablebudget

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget/plan"
)

func snapshotAfter(b *v1beta1.PodUnavailableBudget, after time.Duration) *plan.Snapshot {
	return &plan.Snapshot{Budget: b, Now: gen.Epoch().Add(after)}
}

// A budget whose pods come and go is not compared with all others of its namespace each time, and a budget whose target takes
// long to read delays no numbers of its neighbours.
func TestBudgetsAreComparedNowAndThen(t *testing.T) {
	b := &v1beta1.PodUnavailableBudget{}
	b.Name, b.UID = "web", "budget"
	asked, answers := make(chan types.NamespacedName, 1), make(chan overlap)
	o := newOverlaps(func(_ context.Context, key types.NamespacedName) (*v1beta1.PodUnavailableBudget, overlap, error) {
		asked <- key
		return b, <-answers, nil
	})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	o.into = queue
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.due.Run(ctx) }()

	s := snapshotAfter(b, 0)
	assert.Zero(t, o.compare(s))
	assert.True(t, s.SharedUnknown, "condition Conflict stays as it is until the answer is there")
	assert.Equal(t, "web", await.Receive(t, asked, "the first comparison").Name)
	answers <- overlap{"other", "web-1"}
	woken, _ := queue.Get()
	queue.Done(woken)
	for after := time.Millisecond; after < comparePause; after += 50 * time.Millisecond {
		s = snapshotAfter(b, after)
		assert.Equal(t, max(comparePause-after, batch), o.compare(s))
		assert.Equal(t, "other", s.Shared)
		assert.False(t, s.SharedUnknown)
	}
	assert.Zero(t, o.compare(snapshotAfter(b, comparePause)))
	await.Receive(t, asked, "the second comparison, and none in between")
	answers <- overlap{"other", "web-1"}
	end()
	require.NoError(t, await.Receive(t, ended, "the comparisons end"))
	assert.Zero(t, queue.Len(), "the same answer wakes nobody")
}

func TestAnOverlapWakesItsBudgetWhereTheConditionChanges(t *testing.T) {
	conflict := []metav1.Condition{{Type: disruption.ConditionConflict, Status: metav1.ConditionTrue}}
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		before     []overlap
		now        overlap
		want       bool
	}{
		"none at first":                         {nil, nil, overlap{}, false},
		"one at first":                          {nil, nil, overlap{"other", "web-1"}, true},
		"none, of which an earlier leader knew": {conflict, nil, overlap{}, true},
		"the same":                              {conflict, []overlap{{"other", "web-1"}}, overlap{"other", "web-1"}, false},
		"another one":                           {conflict, []overlap{{"other", "web-1"}}, overlap{"third", "web-1"}, true},
		"none any more":                         {conflict, []overlap{{"other", "web-1"}}, overlap{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1beta1.PodUnavailableBudget{}
			b.UID, b.Status.Conditions = "budget", test.conditions
			o := newOverlaps(nil)
			for _, before := range test.before {
				o.set(b, before)
			}
			assert.Equal(t, test.want, o.set(b, test.now))
		})
	}
}
