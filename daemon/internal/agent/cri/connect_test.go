package cri_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/simulate"
)

// sockets returns how many sockets this process has open.
func sockets(t require.TestingT) int {
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	open := 0
	for _, one := range all {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", one.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			open++
		}
	}
	return open
}

// givenProbed returns runtimes that are probed by the test, by a clock of the test.
func givenProbed(t *testing.T, folder string) (*cri.Runtimes, *clocktesting.FakeClock) {
	t.Helper()
	m, err := metrics.New(prometheus.NewRegistry())
	require.NoError(t, err)
	clock := clocktesting.NewFakeClock(time.Now())
	return cri.New(cri.Config{Root: folder, Metrics: m, Clock: clock, Log: logr.Discard()}), clock
}

// A socket behind which there is no CRI, such as that of a containerd for Docker only, costs no connection and few calls,
// and is found when CRI is switched on.
func TestASocketWithoutCRI(t *testing.T) {
	unknown := func(context.Context, any) error { return status.Error(codes.Unimplemented, "unknown service") }
	for _, method := range []string{"Version", "ImageStatus"} {
		t.Run(method, func(t *testing.T) {
			folder := simulate.Folder(t)
			fake := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd/containerd.sock"))
			fake.Fail(method, unknown)
			runtimes, clock := givenProbed(t, folder)
			runtimes.Probe(t.Context())
			await.Until(t, func(c *assert.CollectT) { assert.NotZero(c, sockets(c)) })
			before := sockets(t)
			for range 300 {
				clock.Step(time.Second)
				runtimes.Probe(t.Context())
			}
			require.ErrorContains(t, runtimes.Ready(), "unknown service")
			assert.True(t, cri.IsUnavailable(runtimes.Ready()))
			await.Until(t, func(c *assert.CollectT) { assert.LessOrEqual(c, sockets(c), before) })
			assert.Less(t, len(fake.Calls("Version")), 20)

			fake.Fail(method, nil)
			clock.Step(30 * time.Second)
			runtimes.Probe(t.Context())
			require.NoError(t, runtimes.Ready())
		})
	}
}

// A runtime that hangs is as good as none: what fails for that is no failure of an image or a container.
func TestARuntimeThatHangsIsUnavailable(t *testing.T) {
	folder := simulate.Folder(t)
	fake := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
	runtimes, _ := givenProbed(t, folder)
	runtimes.Probe(t.Context())
	require.NoError(t, runtimes.Ready())
	fake.Fail("Version", func(context.Context, any) error { return status.Error(codes.DeadlineExceeded, "too late") })
	runtimes.Probe(t.Context())
	_, err := runtimes.Containers(t.Context(), "shop", "web", nil)
	require.ErrorContains(t, err, "too late")
	assert.True(t, cri.IsUnavailable(err))
}

// The runtime gets two minutes on top of the grace: what is killed is not gone at once.
func TestAStopHasTheGraceAndTwoMinutes(t *testing.T) {
	folder := simulate.Folder(t)
	fake := simulate.NewRuntime(t, "containerd", filepath.Join(folder, "containerd.sock"))
	id := fake.Run(pod("web"), "main")
	var left time.Duration
	fake.Fail("StopContainer", func(ctx context.Context, _ any) error {
		deadline, _ := ctx.Deadline()
		left = time.Until(deadline)
		return status.Error(codes.DeadlineExceeded, "not gone yet")
	})
	runtimes, _ := givenProbed(t, folder)
	runtimes.Probe(t.Context())
	one, err := runtimes.ForContainer(id)
	require.NoError(t, err)
	err = one.Stop(t.Context(), id, 5*time.Minute)
	assert.True(t, cri.IsLate(err))
	assert.InDelta(t, (7 * time.Minute).Seconds(), left.Seconds(), 30)
}
