package imagepull

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/imagepull/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/simulate"
)

// server is where credentials are read; away while it does not answer.
type server struct {
	away      atomic.Bool
	auth      []cri.Auth
	forgotten atomic.Int32
}

func (s *server) For(context.Context, string, []v1beta1.SecretReference, []string) ([]cri.Auth, error) {
	if s.away.Load() {
		return nil, errors.New("connection refused")
	}
	return s.auth, nil
}

func (s *server) Forget(string, []v1beta1.SecretReference) { s.forgotten.Add(1) }

// What is no trouble of the image uses up no attempt: a runtime that hangs, or begins, or is slow to say what it has, and an
// API server that is away.
func TestTroublesOfOthersAreNoAttempts(t *testing.T) {
	hangs := func(context.Context, any) error {
		return status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	}
	begins := func(context.Context, any) error { return status.Error(codes.Unknown, "server is not initialized yet") }
	for name, trouble := range map[string]func(*simulate.Runtime, *server, bool){
		"the runtime hangs": func(r *simulate.Runtime, _ *server, on bool) {
			r.Fail("Version", nil)
			if on {
				r.Fail("Version", hangs)
			}
		},
		"the runtime begins": func(r *simulate.Runtime, _ *server, on bool) {
			r.Fail("PullImage", nil)
			r.Fail("ImageStatus", nil)
			if on {
				r.Fail("PullImage", begins)
				r.Fail("ImageStatus", begins)
			}
		},
		"the runtime is slow": func(r *simulate.Runtime, _ *server, on bool) {
			r.Fail("ImageStatus", nil)
			if on {
				r.Fail("ImageStatus", hangs)
			}
		},
		"the server is away": func(_ *simulate.Runtime, s *server, on bool) { s.away.Store(on) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := simulate.Folder(t)
			fake := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
			fake.AddRemoteImage("docker.io/library/app:1", simulate.RemoteImage{ID: "sha256:1"})
			m, err := metrics.New(prometheus.NewRegistry())
			require.NoError(t, err)
			runtimes := cri.New(cri.Config{Root: folder, Metrics: m, Clock: clock.RealClock{}, Log: logr.Discard()})
			runtimes.Probe(t.Context())
			var pauses atomic.Int32
			credentials := &server{}
			p := &puller{node: "n", runtimes: runtimes, credentials: credentials, clock: clock.RealClock{}, jitter: func(time.Duration) time.Duration {
				pauses.Add(1)
				return time.Millisecond
			}}
			trouble(fake, credentials, true)
			runtimes.Probe(t.Context())
			request := plan.PullRequest{
				ID: plan.ID{Ref: imageref.Ref{Name: "app", Tag: "1"}}, Timeout: await.Limit, Attempts: 2, Always: name == "the runtime begins",
			}
			ended := make(chan error, 1)
			go func() {
				_, err := p.pull(t.Context(), time.Now(), func() plan.PullRequest { return request })
				ended <- err
			}()
			await.Until(t, func(c *assert.CollectT) { assert.Greater(c, pauses.Load(), int32(10)) })
			trouble(fake, credentials, false)
			runtimes.Probe(t.Context())
			require.NoError(t, await.Receive(t, ended))
		})
	}
}

// Credentials with which a pull failed are asked for anew: a plugin may have others by now.
func TestRefusedCredentialsAreForgotten(t *testing.T) {
	folder := simulate.Folder(t)
	fake := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
	admitted := atomic.Bool{}
	fake.AddRemoteImage("docker.io/library/app:1", simulate.RemoteImage{ID: "sha256:1", Admit: func(*runtimev1.AuthConfig) bool { return admitted.Load() }})
	m, err := metrics.New(prometheus.NewRegistry())
	require.NoError(t, err)
	runtimes := cri.New(cri.Config{Root: folder, Metrics: m, Clock: clock.RealClock{}, Log: logr.Discard()})
	runtimes.Probe(t.Context())
	credentials := &server{auth: []cri.Auth{{Username: "old"}, {Username: "older"}}}
	p := &puller{node: "n", runtimes: runtimes, credentials: credentials, clock: clock.RealClock{}, jitter: func(time.Duration) time.Duration { return 0 }}
	request := func() plan.PullRequest {
		return plan.PullRequest{ID: plan.ID{Ref: imageref.Ref{Name: "app", Tag: "1"}}, Timeout: await.Limit, Attempts: 2}
	}
	_, err = p.pull(t.Context(), time.Now(), request)
	require.ErrorContains(t, err, "authorization failed")
	assert.Equal(t, int32(2), credentials.forgotten.Load(), "once for each attempt")

	admitted.Store(true)
	_, err = p.pull(t.Context(), time.Now(), request)
	require.NoError(t, err)
	assert.Equal(t, int32(2), credentials.forgotten.Load())
}
