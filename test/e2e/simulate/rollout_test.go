package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/test/forecasts"
	"github.com/flotilla-project/flotilla/test/story"
)

// rollout is an edit of a workload that is foretold, and then made.
type rollout[T client.Object] struct {
	// before changes the workload that is created. Optional.
	before func(T)
	edit   func(T)
}

// play creates the workload, makes the edit, and compares what happens with the forecast.
func (r rollout[T]) play(t *testing.T, set T) {
	t.Helper()
	if r.before != nil {
		r.before(set)
	}
	given(t, set)
	rollout := forecasts.Edit(t, world, set, r.edit)
	story.Settles(t, world, set, nil)
	rollout.ComesTrue(t)
}

// given creates the workload and waits until all its pods are available.
func given[T client.Object](t *testing.T, set T) {
	t.Helper()
	require.NoError(t, world.Client.Create(t.Context(), set))
	story.Settles(t, world, set, nil)
}
