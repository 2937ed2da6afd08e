package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/operator/features"

	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"
)

// A replica answers when it knows the owners of the pods that stored budgets cover, however long it takes to list them.
func TestAReplicaAnswersWhenItKnowsWhatBudgetsCover(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 1)
	a.budget(t)

	over, held := faults.Hold(env, "/replicasets")
	s, environment := replica(t, over, "", features.Defaults(featuregates.All()...))
	_, err := s.webhooks(t.Context(), environment)
	require.NoError(t, err)
	env.Start(t, environment.Manager)
	filled := make(chan error, 1)
	go func() { filled <- s.fill(t.Context(), environment) }()
	<-held.Asked
	assert.Empty(t, filled, "owners of pods are not known")
	held.Release()
	require.NoError(t, <-filled)
	covers, err := s.covers.Budgets(t.Context(), a.pods[0])
	require.NoError(t, err)
	assert.Len(t, covers, 1)
}
