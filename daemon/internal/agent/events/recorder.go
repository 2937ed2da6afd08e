package events

import (
	"context"
	"fmt"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	clientevents "k8s.io/client-go/tools/events"

	coreevents "github.com/flotilla-project/flotilla/core/controllers/events"
)

// Controller is the source in events.
const Controller = "kruise-daemon"

// Recorder sends events. They are sent in the background, from Start on.
type Recorder struct {
	clientevents.EventRecorder
	broadcaster clientevents.EventBroadcaster
}

// New makes a recorder for a node.
func New(config *rest.Config, scheme *runtime.Scheme, node string) (*Recorder, error) {
	client, err := eventsclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for events: %w", err)
	}
	broadcaster := clientevents.NewBroadcaster(coreevents.IgnoreTerminating(&sink{EventSinkImpl: clientevents.EventSinkImpl{Interface: client}, node: node}))
	return &Recorder{EventRecorder: broadcaster.NewRecorder(scheme, Controller), broadcaster: broadcaster}, nil
}

// Start sends events until ctx ends.
func (r *Recorder) Start(ctx context.Context) error {
	if err := r.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("send events: %w", err)
	}
	<-ctx.Done()
	r.broadcaster.Shutdown()
	return nil
}

// Event is an event to record.
type Event struct {
	// Regarding is the object that shows the event, Related another one that it is about, or nil.
	Regarding, Related runtime.Object
	// Type is a type of core/v1: Normal or Warning.
	Type string
	// Reason and Action are words in camel case.
	Reason, Action string
	// Note is the text. It is cut to the length that the API server accepts.
	Note string
}

// Record sends an event.
func (r *Recorder) Record(e Event) {
	r.Eventf(e.Regarding, e.Related, e.Type, e.Reason, e.Action, "%s", coreevents.Shorten(e.Note))
}

// sink names the node as the reporting instance.
type sink struct {
	clientevents.EventSinkImpl
	node string
}

// Create implements clientevents.EventSink.
func (s *sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	event.ReportingInstance = s.node
	return s.EventSinkImpl.Create(ctx, event)
}

// Update implements clientevents.EventSink.
func (s *sink) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	event.ReportingInstance = s.node
	return s.EventSinkImpl.Update(ctx, event)
}
