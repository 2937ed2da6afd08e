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

// minGrace is the shortest grace after the hook, however long the hook took.
const minGrace = 2 * time.Second

// ErrAborted means that a stop was aborted before it was sent to the runtime.
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

// Request is a request to stop a container.
type Request struct {
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

// Hook records an event that the container is being stopped, runs its hook, if any, and returns how long it took. A
// failed hook only records an event. A hook that could not connect to its server takes nothing of the grace. The error is
// ErrAborted when ctx ended before the hook, or that the runtime is away.
func (s *Stopper) Hook(ctx context.Context, o Request) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, ErrAborted
	}
	s.recordEvent(&o, corev1.EventTypeNormal, EventKilling, o.Message)
	if o.PreStop == nil || o.Grace <= 0 {
		return 0, nil
	}
	began := s.Clock.Now()
	err := s.hook(ctx, &o)
	took := s.Clock.Since(began)
	switch {
	case ctx.Err() != nil:
		return took, ErrAborted
	case cri.IsUnavailable(err):
		return took, err
	case err != nil:
		s.recordEvent(&o, corev1.EventTypeWarning, EventHookFailed, fmt.Sprintf("PreStop hook failed: %v", err))
	}
	if errors.Is(err, errNoConnection) {
		took = 0
	}
	s.Metrics.PreStopSeconds.Observe(took.Seconds())
	return took, nil
}

// Signal asks the runtime to stop a container, with the grace less the time that the hook took, and returns when the
// container has ended. It continues when ctx ends.
func (s *Stopper) Signal(ctx context.Context, o Request, took time.Duration) error {
	runtime, err := s.Runtimes.ForContainer(o.Container.ID)
	if err == nil {
		err = runtime.Stop(context.WithoutCancel(ctx), o.Container.ID, max(o.Grace-took, minGrace))
	}
	s.Metrics.Kills.WithLabelValues(o.Reason, metrics.Result(err)).Inc()
	return err
}

// recordEvent records an event on the pod, about the container.
func (s *Stopper) recordEvent(o *Request, kind, reason, note string) {
	c := &o.Container
	s.Events.Record(events.Event{
		Regarding: &corev1.ObjectReference{
			APIVersion: "v1",
			Kind:       "Pod",
			Namespace:  c.Pod.Namespace,
			Name:       c.Pod.Name,
			UID:        c.Pod.UID,
			FieldPath:  "spec.containers{" + c.Name + "}",
		},
		Type:   kind,
		Reason: reason,
		Action: stopAction,
		Note:   note,
	})
}
