package manager

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"
)

// An operator that lacks the permission for what it caches is asked to end like any other.
func TestAnOperatorEndsThatWaitsForItsCaches(t *testing.T) {
	asked := make(chan struct{})
	once := sync.OnceFunc(func() { close(asked) })
	over := faults.Over(apiServer, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/configmaps") {
			once()
			return nil, assert.AnError
		}
		return next.RoundTrip(r)
	})
	operator := Operator{Feature: "plain", Setup: func(ctx context.Context, env *Environment) error {
		_, err := env.Manager.GetCache().GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
		return err
	}}
	ctx, cancel := context.WithCancel(t.Context())
	options := testOptions(t, apiServer.Namespace(t))
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, operator, options, over.Config, logr.Discard())
	}()
	<-asked
	cancel()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(2 * time.Minute):
		t.Fatal("it does not end")
	}
}
