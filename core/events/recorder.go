package events

import (
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientevents "k8s.io/client-go/tools/events"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/execute"
)

const (
	// PerPass is how many events one pass sends at most. Beyond it a workload's events repeat each
	// other, and each costs a write.
	PerPass = 20
	// maxNote is the length in bytes that the API server accepts for a note.
	maxNote = 1024
	// noticeAction is the action of events that are not about an action.
	noticeAction = "Reconcile"
)

// Recorder sends the events of one controller.
type Recorder struct {
	sink clientevents.EventRecorder
}

// NewRecorder makes a recorder over the manager's GetEventRecorder(name); the name is shown to users
// as the source of the events.
func NewRecorder(sink clientevents.EventRecorder) *Recorder { return &Recorder{sink: sink} }

type event struct {
	kind, reason, action, note string
	related                    runtime.Object
}

// Tell sends the events of a pass on the owner: those of its actions, after the plan's notices. Of
// more than PerPass it sends the first ones, warnings first. A stale action tells nothing.
func (r *Recorder) Tell(owner runtime.Object, notices []action.Notice, outcome *execute.Outcome) {
	all := ofNotices(notices)
	for i := range outcome.Results {
		all = appendResult(all, &outcome.Results[i])
	}
	sent := 0
	for _, kind := range []string{corev1.EventTypeWarning, corev1.EventTypeNormal} {
		for _, e := range all {
			if e.kind == kind && sent < PerPass {
				r.sink.Eventf(owner, e.related, e.kind, e.reason, e.action, "%s", shorten(e.note))
				sent++
			}
		}
	}
}

func ofNotices(notices []action.Notice) []event {
	all := make([]event, 0, len(notices))
	for _, n := range notices {
		e := event{kind: n.Type, reason: n.Reason, action: noticeAction, note: n.Note}
		if n.Related != nil {
			e.related = n.Related
		}
		all = append(all, e)
	}
	return all
}

func appendResult(all []event, result *execute.Result) []event {
	told := result.Action.Event
	if told == nil {
		return all
	}
	e := event{action: string(result.Action.Verb), related: result.Action.Object}
	if result.Object != nil {
		e.related = result.Object // a created object has its UID only there
	}
	switch result.State {
	case execute.Done:
		e.kind, e.reason, e.note = corev1.EventTypeNormal, told.Succeeded, told.Note
	case execute.Blocked, execute.Failed:
		e.kind, e.reason, e.note = corev1.EventTypeWarning, told.Failed, result.Err.Error()
	case execute.Stale: // nothing was written, and the next pass judges anew
	}
	if e.reason == "" {
		return all
	}
	return append(all, e)
}

// shorten cuts a note to what the API server accepts.
func shorten(note string) string {
	if len(note) <= maxNote {
		return note
	}
	cut := maxNote
	for !utf8.RuneStart(note[cut]) {
		cut--
	}
	return note[:cut]
}
