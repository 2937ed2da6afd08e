package manager

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Writes of a leader end before the next one begins. Those of certificates do not depend on who leads: an operator gets
// ready on an API server that needs longer for them.
func TestCertificatesAreWrittenToABusyServer(t *testing.T) {
	options := testOptions(t, apiServer.Namespace(t))
	installWebhooks(t, apiServer.Client(t), fmt.Sprintf("https://localhost:%d", options.Certificates.Port))
	r := &replica{options: options, agents: make(chan string, 1000), slow: 3 * options.LeaderElection.writeLimit()}
	webhooks := func(ctx context.Context, env *Environment) (Webhooks, error) {
		endpoints, err := widgetWebhooks(ctx, env)
		endpoints.Converting = nil
		return endpoints, err
	}
	require.Less(t, r.slow, 10*time.Second)
	r.run(t, Operator{Feature: "widget", Webhooks: webhooks, Setup: func(context.Context, *Environment) error { return nil }})
	r.eventuallyReady(t)
}
