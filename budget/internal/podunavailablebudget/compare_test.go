package podunavailablebudget

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget/plan"
)

// A budget whose pods come and go is not compared with all others of its namespace each time.
func TestBudgetsAreComparedNowAndThen(t *testing.T) {
	asked, answer := 0, error(nil)
	r := &reconciler{
		compared: &memory.Objects[time.Time]{},
		overlap: func(context.Context, *v1beta1.PodUnavailableBudget, []*corev1.Pod) (string, string, error) {
			asked++
			return "other", "web-1", answer
		},
	}
	b := &v1beta1.PodUnavailableBudget{}
	b.UID = "budget"
	at := func(after time.Duration) (s plan.Snapshot) {
		s = plan.Snapshot{Budget: b, Now: gen.Epoch().Add(after)}
		r.compare(t.Context(), &s)
		return s
	}
	s := at(0)
	assert.Equal(t, "other", s.Shared)
	assert.False(t, s.SharedUnknown)
	for after := time.Millisecond; after < comparePause; after += 50 * time.Millisecond {
		assert.True(t, at(after).SharedUnknown, "condition Conflict stays as it is")
	}
	assert.Equal(t, 1, asked)
	answer = assert.AnError
	assert.True(t, at(comparePause).SharedUnknown)
	assert.Equal(t, 2, asked)
	assert.Equal(t, comparePause, untilCompared(gen.Epoch(), gen.Epoch()))
	assert.Zero(t, untilCompared(time.Time{}, gen.Epoch()))
}
