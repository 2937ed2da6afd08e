package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/operator/features"

	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"
	"github.com/flotilla-project/flotilla/spread/internal/featuregates"
)

// A replica answers when it knows the workloads that stored spreads target, however long it takes to list them.
func TestAReplicaAnswersWhenItKnowsWhatSpreadsTarget(t *testing.T) {
	c, namespace := serve(t), env.Namespace(t)
	require.NoError(t, c.Create(t.Context(), newReplicaSet(namespace, 1)))
	spread := newSpread(namespace, intstr.FromInt32(1))
	require.NoError(t, c.Create(t.Context(), spread))
	settled(t, c, spread, "0/1 0/-1")

	over, held := faults.Hold(env, "/replicasets")
	s, environment := replica(t, over, "", features.Defaults(featuregates.All()...))
	_, err := s.webhooks(t.Context(), environment)
	require.NoError(t, err)
	env.Start(t, environment.Manager)
	filled := make(chan error, 1)
	go func() { filled <- s.fill(t.Context(), environment) }()
	<-held.Asked
	assert.Empty(t, filled, "the target is not known")
	held.Release()
	require.NoError(t, <-filled)
}
