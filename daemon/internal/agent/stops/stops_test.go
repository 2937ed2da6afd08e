package stops_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
)

const id = "containerd://c1"

var (
	pod     = types.NamespacedName{Namespace: "shop", Name: "web"}
	errAway = status.Error(codes.Unavailable, "away")
)

// fixture are the stops of a node. The work of stops waits until the test goes on with it.
type fixture struct {
	*stops.Stops
	t       *testing.T
	work    []func()
	hook    error
	signal  error
	hooked  int
	signals []time.Duration // what the hook before each took
	ended   []error
}

func givenStops(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t}
	f.Stops = stops.New(stopper{f}, clock.RealClock{}, func(work func()) { f.work = append(f.work, work) })
	return f
}

type stopper struct{ f *fixture }

func (s stopper) Hook(ctx context.Context, o containerstop.Request) (time.Duration, error) {
	switch {
	case ctx.Err() != nil:
		return 0, containerstop.ErrAborted
	case o.PreStop == nil:
		return 0, nil
	}
	s.f.hooked++
	return time.Second, s.f.hook
}

func (s stopper) Signal(_ context.Context, _ containerstop.Request, took time.Duration) error {
	s.f.signals = append(s.f.signals, took)
	return s.f.signal
}

func order(who types.UID) stops.Order {
	return stops.Order{Pod: pod, For: memory.Key{UID: who}, Request: containerstop.Request{
		Container: cri.Container{ID: id}, PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}},
	}}
}

func (f *fixture) end(_ context.Context, err error) { f.ended = append(f.ended, err) }

// goOn does the work under way.
func (f *fixture) goOn() {
	f.t.Helper()
	require.Len(f.t, f.work, 1)
	work := f.work[0]
	f.work = nil
	work()
}

// afterHook is a stop for r with a hook that has ended.
func (f *fixture) afterHook() {
	f.t.Helper()
	f.Hook(f.t.Context(), order("r"), f.end)
	f.goOn()
	require.Equal(f.t, node.AfterHook, f.Of(pod)[id].Stage)
}

func all(string) bool { return true }

// A stop goes from its hook to the signal, with what the hook took, and each runs once.
func TestAStopGoesFromHookToSignal(t *testing.T) {
	f := givenStops(t)
	f.Hook(t.Context(), order("r"), f.end)
	f.Hook(t.Context(), order("r"), f.end)
	f.Hook(t.Context(), order("other"), f.end)
	f.WithoutHook(t.Context(), order("other"), f.end)
	assert.False(t, f.Signal(t.Context(), order("r"), f.end), "the hook is under way")
	stop := f.Of(pod)[id]
	assert.True(t, stop.Unsent())
	f.goOn()
	assert.False(t, f.Signal(t.Context(), order("other"), f.end))
	assert.True(t, f.Signal(t.Context(), order("r"), f.end))
	assert.False(t, f.Signal(t.Context(), order("r"), f.end))
	assert.Equal(t, node.Told, f.Of(pod)[id].Stage)
	f.Abort(pod, all)
	f.goOn()
	assert.Equal(t, node.Ended, f.Of(pod)[id].Stage, "what has reached the runtime is not given up")
	assert.Equal(t, []any{1, []time.Duration{time.Second}, []error{nil, nil}}, []any{f.hooked, f.signals, f.ended})

	f.Hook(t.Context(), order("r"), f.end)
	assert.Empty(t, f.work, "each object has one try")
	f.WithoutHook(t.Context(), order("other"), f.end)
	f.goOn()
	assert.Equal(t, []time.Duration{time.Second, 0}, f.signals)
	f.DropEnded(pod)
	assert.Empty(t, f.Of(pod))
}

// A stop that is given up before the signal is not known any more.
func TestStopsAreGivenUp(t *testing.T) {
	f := givenStops(t)
	f.Hook(t.Context(), order("r"), f.end)
	f.Abort(pod, func(other string) bool { return other != id })
	f.Abort(types.NamespacedName{Namespace: "shop", Name: "other"}, all)
	f.goOn()
	assert.Equal(t, []error{nil}, f.ended, "other containers and pods were meant")
	f.Forget(pod)
	assert.Empty(t, f.Of(pod))
	assert.False(t, f.Signal(t.Context(), order("r"), f.end), "it was given up after its hook")

	f.Hook(t.Context(), order("r"), f.end)
	f.Forget(pod)
	f.goOn()
	assert.Equal(t, []error{nil, containerstop.ErrAborted}, f.ended)
	assert.Empty(t, f.Of(pod))
	assert.Empty(t, f.signals)
}

// A runtime that has not answered did not stop the container, or the list shows it: the stop can be tried again.
func TestAStopThatIsLateIsLookedAtAgain(t *testing.T) {
	ill := errors.New("no such container")
	for _, c := range []struct {
		hook, signal error
		stays        bool
	}{
		{stays: true},
		{signal: ill, stays: true},
		{signal: errAway},
		{signal: fmt.Errorf("StopContainer: %w", status.Error(codes.DeadlineExceeded, "late"))},
		{hook: errAway},
	} {
		t.Run(fmt.Sprint(c.hook, c.signal), func(t *testing.T) {
			f := givenStops(t)
			f.hook, f.signal = c.hook, c.signal
			f.Hook(t.Context(), order("r"), f.end)
			f.goOn()
			assert.Equal(t, c.hook == nil, f.Signal(t.Context(), order("r"), f.end))
			if c.hook == nil {
				f.goOn()
			}
			stop, known := f.Of(pod)[id]
			assert.Equal(t, c.stays, known)
			if c.stays {
				assert.Equal(t, c.signal, stop.Err)
				assert.NotZero(t, stop.At)
			}
		})
	}
}

// When the agent ends, nothing begins, and what is between hook and signal goes on.
func TestTheEndOfTheAgent(t *testing.T) {
	f := givenStops(t)
	f.afterHook()
	f.Wait()
	other := order("r")
	other.Request.Container.ID = "containerd://c2"
	f.Hook(t.Context(), other, f.end)
	f.WithoutHook(t.Context(), other, f.end)
	assert.Empty(t, f.work)
	assert.True(t, f.Signal(t.Context(), order("r"), f.end))
	f.goOn()
	assert.Len(t, f.signals, 1)
}

// Stops run in parallel to the pass that begins them, and outlive it.
func TestStopsOutliveThePass(t *testing.T) {
	f := givenStops(t)
	s := stops.New(stopper{f}, clock.RealClock{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	held := make(chan struct{})
	s.Hook(ctx, order("r"), func(ctx context.Context, err error) {
		<-held
		f.end(ctx, errors.Join(err, ctx.Err()))
	})
	cancel()
	close(held)
	s.Wait()
	assert.Equal(t, []error{nil}, f.ended)
}
