package plan

import (
	"strings"
	"time"
)

// Annotations by which the manager remembers moments across its restarts. A value is a time, RFC 3339 with
// fractions, and the name of the machine with the clock that it is from. On another machine it means nothing: a manager
// that was moved counts from the start again.
const (
	// FirstSeenAnnotation is when the manager first saw a request with a deadline. activeDeadlineSeconds
	// counts from it: the creation time is the API server's.
	FirstSeenAnnotation = "crr.apps.kruise.io/first-seen"
	// CompletionSeenAnnotation is when the manager first saw a request complete. ttlSecondsAfterFinished
	// counts from it: the completion time may be the node's.
	CompletionSeenAnnotation = "crr.apps.kruise.io/completion-seen"
)

// firstSeen returns when a manager on this machine first saw the request.
func (p *pass) firstSeen() time.Time {
	if earlier, ok := p.recall(FirstSeenAnnotation); ok && earlier.Before(p.FirstSeen) {
		return earlier
	}
	return p.FirstSeen
}

// rememberFirst writes down since when the deadline counts. It is the last step: nothing waits for it.
func (p *pass) rememberFirst() {
	if _, ok := p.recall(FirstSeenAnnotation); !ok {
		p.patchRequest(stepSeen, "FirstSeen", "the deadline starts now", map[string]any{
			"annotations": map[string]any{FirstSeenAnnotation: p.moment(p.FirstSeen)},
		})
	}
}

func (p *pass) moment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) + " " + p.Clock }

// recall reads a moment. One of another machine, or one that this machine's clock has yet to reach, is none.
func (p *pass) recall(annotation string) (time.Time, bool) {
	text, clock, _ := strings.Cut(p.Request.Annotations[annotation], " ")
	moment, err := time.Parse(time.RFC3339Nano, text)
	return moment, err == nil && clock == p.Clock && !moment.After(p.Now)
}
