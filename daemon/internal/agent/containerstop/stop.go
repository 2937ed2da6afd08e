package containerstop

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/events"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
)

// leastGrace is what a container has to end after its hook, however long the hook took.
const leastGrace = 2 * time.Second

// ErrAborted means that a stop was given up before the runtime was told.
var ErrAborted = errors.New("the stop was given up before it began")

// Stopper stops containers.
type Stopper struct {
	Runtimes *cri.Runtimes
	Events   *events.Recorder
	Metrics  *metrics.Metrics
	Clock    clock.Clock
	// HostIP is where pods in the node's network are reached; empty if it is not known.
	HostIP string
}

// Order is a container to stop.
type Order struct {
	// Container is the container as the runtime has it.
	Container cri.Container
	// PreStop is the hook, or nil; Ports are those that it may name.
	PreStop *corev1.LifecycleHandler
	Ports   []corev1.ContainerPort
	// Grace is the time for hook and stop together.
	Grace time.Duration
	// Reason is the value of the metric's label.
	Reason string
	// Message is the text of the event.
	Message string
}

// Stop runs the hook of a container and stops it. It returns when the container has ended. When ctx ends
// earlier, the hook is given up and the error is ErrAborted; what the runtime has been told goes on to its end.
func (s *Stopper) Stop(ctx context.Context, o Order) error {
	took, err := s.Hook(ctx, o)
	if err != nil {
		return err
	}
	return s.Signal(ctx, o, took)
}

// Hook tells that the container is being stopped, runs its hook, if any, and returns how long it took. A hook
// that fails is an event and no more. The error is ErrAborted when ctx ended before the hook, or that the runtime
// is away.
func (s *Stopper) Hook(ctx context.Context, o Order) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, ErrAborted
	}
	s.tell(&o, corev1.EventTypeNormal, EventKilling, o.Message)
	if o.PreStop == nil || o.Grace <= 0 {
		return 0, nil
	}
	began := s.Clock.Now()
	err := s.hook(ctx, &o)
	took := s.Clock.Since(began)
	switch {
	case ctx.Err() != nil:
		return took, ErrAborted
	case cri.IsAway(err):
		return took, err
	case err != nil:
		s.tell(&o, corev1.EventTypeWarning, EventHookFailed, fmt.Sprintf("PreStop hook failed: %v", err))
	}
	s.Metrics.PreStopSeconds.Observe(took.Seconds())
	return took, nil
}

// Signal tells the runtime to stop a container whose hook took so much of the grace, and returns when the
// container has ended. The end of ctx does not end it.
func (s *Stopper) Signal(ctx context.Context, o Order, took time.Duration) error {
	runtime, err := s.Runtimes.Of(o.Container.ID)
	if err == nil {
		err = runtime.Stop(context.WithoutCancel(ctx), o.Container.ID, max(o.Grace-took, leastGrace))
	}
	s.Metrics.Kills.WithLabelValues(o.Reason, metrics.Result(err)).Inc()
	return err
}

// tell sends an event that the pod shows, about the container.
func (s *Stopper) tell(o *Order, kind, reason, note string) {
	c := &o.Container
	s.Events.Tell(events.Event{
		Regarding: &corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: c.Pod.Namespace, Name: c.Pod.Name, UID: c.Pod.UID,
			FieldPath: "spec.containers{" + c.Name + "}",
		},
		Type: kind, Reason: reason, Action: stopAction, Note: note,
	})
}
