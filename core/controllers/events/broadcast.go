package events

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1 "k8s.io/client-go/kubernetes/typed/events/v1"
	clientevents "k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Broadcast returns a recorder that sends events until the manager ends; users see source as the reporting component.
// The manager's own recorder would log each event as an error that is refused because its namespace is terminating.
func Broadcast(mgr ctrl.Manager, source string) (clientevents.EventRecorder, error) {
	api, err := v1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for events: %w", err)
	}
	broadcaster := clientevents.NewBroadcaster(IgnoreTerminating(&clientevents.EventSinkImpl{Interface: api}))
	if err := broadcaster.StartRecordingToSinkWithContext(context.Background()); err != nil { //nolint:forbidigo // events leave until the manager ends, below
		return nil, fmt.Errorf("start to send events: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		broadcaster.Shutdown()
		return nil
	})); err != nil {
		return nil, fmt.Errorf("add the end of events: %w", err)
	}
	return broadcaster.NewRecorder(mgr.GetScheme(), source), nil
}

// IgnoreTerminating returns a sink for which an event counts as sent when it is refused because its namespace is terminating.
// It would be logged as an error, once for each pod of the namespace.
func IgnoreTerminating(sink clientevents.EventSink) clientevents.EventSink {
	return ignoreTerminating{sink}
}

type ignoreTerminating struct{ clientevents.EventSink }

// Create sends a new event.
func (f ignoreTerminating) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	made, err := f.EventSink.Create(ctx, event)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return event, nil
	}
	return made, err
}
