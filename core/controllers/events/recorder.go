package events

import (
	"cmp"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
)

const (
	// PerPass is the largest number of events that one pass sends. More would only repeat each other, and each costs a
	// write.
	PerPass = 20
	// refill is how many events a second an owner's allowance gains.
	refill = rate.Limit(1)
	// owners is of how many owners the allowances are kept.
	owners = 4096
	// maxNote is the length in bytes that the API server accepts for a note.
	maxNote = 1024
	// noticeAction is the action of notices that name none.
	noticeAction = "Reconcile"
)

// Recorder sends the events of one controller.
type Recorder struct {
	sink   clientevents.EventRecorder
	scheme *runtime.Scheme
	clock  clock.PassiveClock

	mu         sync.Mutex
	allowances *lru.Cache // *allowance by the owner's UID
}

// allowance bounds the events about one owner that are no warnings: 2*PerPass at once and one a second in the long run.
// Events about the outcome of an action leave PerPass of it to notices: a rollout has many outcomes, and each notice
// reports something new.
type allowance struct{ *rate.Limiter }

// NewRecorder returns a recorder that sends to the sink that Broadcast returned. The scheme knows the kinds of owners.
func NewRecorder(sink clientevents.EventRecorder, scheme *runtime.Scheme, c clock.PassiveClock) *Recorder {
	return &Recorder{
		sink:       sink,
		scheme:     scheme,
		clock:      c,
		allowances: lru.New(owners),
	}
}

type event struct {
	kind, reason, action, note string
	related                    runtime.Object
	ofAction                   bool
}

// Record sends the events of a pass on the owner: the plan's notices, then the events of its actions. Of more than
// PerPass it sends the first ones, warnings first, and as many other events as the owner's allowance leaves. A stale
// action has no event.
func (r *Recorder) Record(owner runtime.Object, notices []action.Notice, outcome *progress.Result) {
	all := ofNotices(notices)
	for i := range outcome.Outcomes {
		all = appendResult(all, &outcome.Outcomes[i])
	}
	sent := 0
	about := r.refer(owner)
	allowed := r.of(owner)
	now := r.clock.Now()
	for _, kind := range []string{corev1.EventTypeWarning, corev1.EventTypeNormal} {
		for i := range all {
			e := &all[i]
			if e.kind != kind || sent == PerPass || kind == corev1.EventTypeNormal && !allowed.spend(e, now) {
				continue
			}
			r.sink.Eventf(about, r.refer(e.related), e.kind, e.reason, e.action, "%s", Shorten(e.note))
			sent++
		}
	}
}

// spend reports whether the owner may get one more event that is no warning, and counts it.
func (a *allowance) spend(e *event, now time.Time) bool {
	if e.ofAction && a.TokensAt(now) < PerPass+1 {
		return false
	}
	return a.AllowN(now, 1)
}

// of returns the allowance of the object.
func (r *Recorder) of(o runtime.Object) *allowance {
	var owner types.UID
	if m, err := meta.Accessor(o); err == nil {
		owner = m.GetUID()
	} else if ref, ok := o.(*corev1.ObjectReference); ok {
		owner = ref.UID
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.allowances.Get(owner); ok {
		return known.(*allowance)
	}
	fresh := &allowance{rate.NewLimiter(refill, 2*PerPass)}
	r.allowances.Add(owner, fresh)
	return fresh
}

func (r *Recorder) refer(o runtime.Object) runtime.Object { return Refer(r.scheme, o) }

// Refer returns a reference to the object without its resourceVersion, by which an event names it: events that differ only
// in that are aggregated. An object of a kind that the scheme does not know is returned itself.
func Refer(scheme *runtime.Scheme, o runtime.Object) runtime.Object {
	if o == nil {
		return nil
	}
	ref, err := reference.GetReference(scheme, o)
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
		e := event{
			kind:   n.Type,
			reason: n.Reason,
			action: cmp.Or(n.Action, noticeAction),
			note:   n.Note,
		}
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
	e := event{action: string(result.Action.Verb), ofAction: true}
	switch {
	case result.Object != nil:
		e.related = result.Object // a created object has its UID only there
	case result.Action.Verb != action.Create:
		e.related = result.Action.Object
	}
	switch result.State {
	case progress.Done:
		e.kind = corev1.EventTypeNormal
		e.reason = told.Succeeded
		e.note = told.Note
	case progress.Blocked, progress.Failed:
		e.kind = corev1.EventTypeWarning
		e.reason = told.Failed
		e.note = told.FailedNote + result.FailureText()
	case progress.Stale: // nothing was written, and the next pass plans again
	}
	if e.reason == "" {
		return all
	}
	return append(all, e)
}

// Shorten cuts a note to the length that the API server accepts, between two characters.
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
