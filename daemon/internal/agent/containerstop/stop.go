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

const (
	// leastGrace is what a container has to end after its hook, however long the hook took.
	leastGrace = 2 * time.Second

	reasonKilling    = "Killing"
	reasonFailedHook = "FailedPreStopHook"
	eventAction      = "StopContainer"
)

// ErrAborted says that a stop was given up before the runtime was told.
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

// Stop stops a container and returns when it has ended. When ctx ends earlier, the hook is given up and the
// error is ErrAborted; what the runtime has been told goes on to its end. A hook that fails is an event and no
// more.
func (s *Stopper) Stop(ctx context.Context, o Order) error {
	err := s.stop(ctx, o)
	if !errors.Is(err, ErrAborted) {
		s.Metrics.Kills.WithLabelValues(o.Reason, metrics.Result(err)).Inc()
	}
	return err
}

func (s *Stopper) stop(ctx context.Context, o Order) error {
	runtime, err := s.Runtimes.Of(o.Container.ID)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ErrAborted
	}
	s.tell(&o, corev1.EventTypeNormal, reasonKilling, o.Message)
	began := s.Clock.Now()
	if o.PreStop != nil && o.Grace > 0 {
		if err := s.hook(ctx, runtime, &o); err != nil && ctx.Err() == nil {
			s.tell(&o, corev1.EventTypeWarning, reasonFailedHook, fmt.Sprintf("PreStop hook failed: %v", err))
		}
		s.Metrics.PreStopSeconds.Observe(s.Clock.Since(began).Seconds())
	}
	if ctx.Err() != nil {
		return ErrAborted
	}
	rest := max(o.Grace-s.Clock.Since(began), leastGrace)
	return runtime.Stop(context.WithoutCancel(ctx), o.Container.ID, rest)
}

// tell sends an event that the pod shows, about the container.
func (s *Stopper) tell(o *Order, kind, reason, note string) {
	c := &o.Container
	s.Events.Tell(events.Event{
		Regarding: &corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: c.Pod.Namespace, Name: c.Pod.Name, UID: c.Pod.UID,
			FieldPath: "spec.containers{" + c.Name + "}",
		},
		Type: kind, Reason: reason, Action: eventAction, Note: note,
	})
}
