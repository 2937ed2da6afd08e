package setup

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"
)

// A replica answers when it knows the owners of the pods that stored budgets cover, however long it takes to list them. Where
// budgets cannot be listed it does not wait: somebody may have to convert them.
func TestAReplicaAnswersWhenItKnowsWhatBudgetsCover(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults()), 1)
	a.budget(t)

	asked, listed := make(chan struct{}, 100), make(chan struct{})
	over := faults.Over(env, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/replicasets") {
			asked <- struct{}{}
			select {
			case <-listed:
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return next.RoundTrip(r)
	})
	s, environment := replica(t, over, "", features.Defaults())
	_, err := s.webhooks(t.Context(), environment)
	require.NoError(t, err)
	env.Start(t, environment.Manager)
	filled := make(chan error, 1)
	go func() { filled <- s.fill(t.Context(), environment) }()
	<-asked
	assert.Empty(t, filled, "owners of pods are not known")
	close(listed)
	require.NoError(t, <-filled)
	covers, err := s.covers.Budgets(t.Context(), a.pods[0])
	require.NoError(t, err)
	assert.Len(t, covers, 1)

	broken := faults.Over(env, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/podunavailablebudgets") {
			return nil, assert.AnError
		}
		return next.RoundTrip(r)
	})
	s, environment = replica(t, broken, "", features.Defaults())
	_, err = s.webhooks(t.Context(), environment)
	require.NoError(t, err)
	env.Start(t, environment.Manager)
	require.ErrorContains(t, s.fill(t.Context(), environment), "list the stored budgets")
}
