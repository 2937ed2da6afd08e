package admission

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// The cache shows a WorkloadSpread a little after it was stored: its first pods must not be missed.
func TestASpreadIsFoundBeforeTheCacheShowsIt(t *testing.T) {
	stored := spread(t, target+"subsets: [{name: a}]")
	other := spread(t, "targetRef: {apiVersion: apps/v1, kind: Deployment, name: other}\nsubsets: [{name: a}]")
	other.Name = "other"
	now := clocktesting.NewFakePassiveClock(gen.Epoch())
	var cached []*v1beta1.WorkloadSpread
	var elsewhere time.Time
	l := &List{
		Live: newServer(t, stored), Clock: now, Admitted: func(context.Context, string) time.Time { return elsewhere },
		Cached: func(context.Context, string) ([]*v1beta1.WorkloadSpread, error) { return cached, nil },
	}
	find := func() string {
		got, err := l.find(t.Context(), stored.Namespace, func(s *v1beta1.WorkloadSpread) bool { return s.Spec.TargetReference.Name == "web" })
		require.NoError(t, err)
		if got == nil {
			return ""
		}
		return got.Name
	}
	may := func() bool {
		return l.mayHave(t.Context(), stored.Namespace, func(s *v1beta1.WorkloadSpread) bool { return s.Spec.TargetReference.Name == "web" })
	}
	assert.Equal(t, stored.Name, find(), "the cache shows none of the namespace")
	assert.True(t, may())
	cached = []*v1beta1.WorkloadSpread{other}
	assert.Empty(t, find(), "nobody has admitted another")
	assert.False(t, may())
	l.expect(stored.Namespace)
	assert.Equal(t, stored.Name, find())
	now.SetTime(gen.Epoch().Add(young + time.Second))
	assert.Empty(t, find(), "the server is not asked for ever")
	elsewhere = now.Now()
	assert.Equal(t, stored.Name, find(), "another replica has admitted it")
	assert.True(t, may())
	cached = append(cached, stored)
	elsewhere = time.Time{}
	assert.True(t, may())
	cached, elsewhere = cached[:1], now.Now()
	elsewhere = elsewhere.Add(-young - time.Second)
	assert.Empty(t, find())
	elsewhere = now.Now().AddDate(50, 0, 0)
	assert.Empty(t, find(), "nobody has admitted it in the future")
	l.expect("elsewhere")
	assert.Len(t, l.admitted, 1, "what is over is forgotten")
}
