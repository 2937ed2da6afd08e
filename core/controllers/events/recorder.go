package events

import (
	"cmp"
	"sync"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
)

const (
	// PerPass is the largest number of events that one pass sends. More would only repeat each other, and each costs a
	// write. Passes that go on with each other count as one, but for warnings.
	PerPass = 20
	// maxNote is the length in bytes that the API server accepts for a note.
	maxNote = 1024
	// noticeAction is the action of notices that name none.
	noticeAction = "Reconcile"
)

// Recorder sends the events of one controller.
type Recorder struct {
	sink   clientevents.EventRecorder
	scheme *runtime.Scheme

	mu   sync.Mutex
	sent map[types.NamespacedName]int // by owners whose last pass is to go on
}

// NewRecorder returns a recorder that sends to what Broadcast returned. The scheme knows the kinds of owners.
func NewRecorder(sink clientevents.EventRecorder, scheme *runtime.Scheme) *Recorder {
	return &Recorder{sink: sink, scheme: scheme}
}

type event struct {
	kind, reason, action, note string
	related                    runtime.Object
}

// Record sends the events of a pass on the owner: the plan's notices, then those of its actions. Of more than PerPass
// it sends the first ones, warnings first. A stale action has no event.
func (r *Recorder) Record(owner runtime.Object, notices []action.Notice, outcome *progress.Result) {
	all := ofNotices(notices)
	for i := range outcome.Outcomes {
		all = appendResult(all, &outcome.Outcomes[i])
	}
	sent, about := 0, r.refer(owner)
	before := r.sentBefore(owner)
	for _, kind := range []string{corev1.EventTypeWarning, corev1.EventTypeNormal} {
		for _, e := range all {
			if e.kind == kind && (sent < PerPass && kind == corev1.EventTypeWarning || before+sent < PerPass) {
				r.sink.Eventf(about, r.refer(e.related), e.kind, e.reason, e.action, "%s", Shorten(e.note))
				sent++
			}
		}
	}
	r.goOn(owner, before+sent, outcome.Spent)
}

// sentBefore returns how many events were sent by the passes about an owner that the present one goes on with.
func (r *Recorder) sentBefore(owner runtime.Object) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent[nameOf(owner)]
}

// goOn remembers how many events were sent if another pass goes on.
func (r *Recorder) goOn(owner runtime.Object, sent int, goesOn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !goesOn {
		delete(r.sent, nameOf(owner))
		return
	}
	if r.sent == nil {
		r.sent = map[types.NamespacedName]int{}
	}
	r.sent[nameOf(owner)] = sent
}

// Forget drops what is remembered of an owner that is gone.
func (r *Recorder) Forget(owner types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sent, owner)
}

func nameOf(o runtime.Object) types.NamespacedName {
	m, err := meta.Accessor(o)
	if err != nil { // a reference, about which no passes go on
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
}

// refer returns a reference to the object without its resourceVersion: events that differ only in that are aggregated.
func (r *Recorder) refer(o runtime.Object) runtime.Object {
	if o == nil {
		return nil
	}
	ref, err := reference.GetReference(r.scheme, o)
	if err != nil {
		return o
	}
	about := *ref // of a reference it is the reference itself
	about.ResourceVersion = ""
	return &about
}

func ofNotices(notices []action.Notice) []event {
	all := make([]event, 0, len(notices))
	for _, n := range notices {
		e := event{kind: n.Type, reason: n.Reason, action: cmp.Or(n.Action, noticeAction), note: n.Note}
		if n.Related != nil {
			e.related = n.Related
		}
		all = append(all, e)
	}
	return all
}

func appendResult(all []event, result *progress.Outcome) []event {
	told := result.Action.Event
	if told == nil {
		return all
	}
	e := event{action: string(result.Action.Verb)}
	switch {
	case result.Object != nil:
		e.related = result.Object // a created object has its UID only there
	case result.Action.Verb != action.Create:
		e.related = result.Action.Object
	}
	switch result.State {
	case progress.Done:
		e.kind, e.reason, e.note = corev1.EventTypeNormal, told.Succeeded, told.Note
	case progress.Blocked, progress.Failed:
		e.kind, e.reason, e.note = corev1.EventTypeWarning, told.Failed, result.FailureText()
	case progress.Stale: // nothing was written, and the next pass plans again
	}
	if e.reason == "" {
		return all
	}
	return append(all, e)
}

// Shorten cuts a note to what the API server accepts, between two characters.
func Shorten(note string) string {
	if len(note) <= maxNote {
		return note
	}
	cut := maxNote
	for !utf8.RuneStart(note[cut]) {
		cut--
	}
	return note[:cut]
}
