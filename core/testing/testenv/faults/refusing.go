package faults

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A controller whose requests are refused may make at most mostTries requests for each object in quietTime.
const (
	mostTries = 10
	quietTime = 10 * time.Second
)

// Refusing is a server that refuses requests for a while.
type Refusing struct {
	// Of reports whether a request is refused. For is how long requests are refused, from the first one on.
	Of  func(*http.Request) bool
	For time.Duration
	// Err is the answer, nil for none.
	Err *apierrors.StatusError

	mu    sync.Mutex
	began time.Time
	tries map[string][]time.Duration
}

// Refusals returns the answers to writes that a controller must tolerate forever; nil means no answer.
func Refusals() map[string]*apierrors.StatusError {
	var any schema.GroupResource
	return map[string]*apierrors.StatusError{
		"403 forbidden":         apierrors.NewForbidden(any, "it", ErrCut),
		"409 conflict":          apierrors.NewConflict(any, "it", ErrCut),
		"422 invalid":           apierrors.NewInvalid(schema.GroupKind{}, "it", field.ErrorList{field.Forbidden(nil, "refused")}),
		"429 too many requests": apierrors.NewTooManyRequests(`admission webhook "limit" denied the request: too many`, 1),
		"500 internal error":    apierrors.NewInternalError(ErrCut),
		"timeout":               nil,
	}
}

// EachRefusal runs a subtest for each of Refusals, all in parallel. The subtest sets what is refused and for how long.
func EachRefusal(t *testing.T, play func(*testing.T, *Refusing)) {
	t.Helper()
	for name, err := range Refusals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, &Refusing{Err: err})
		})
	}
}

// Send returns the way to the server.
func (f *Refusing) Send(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	switch {
	case !f.Of(r) || !f.refuses(r):
		return next.RoundTrip(r)
	case f.Err == nil:
		return nil, context.DeadlineExceeded
	}
	return answer(r, f.Err)
}

func (f *Refusing) refuses(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.began.IsZero() {
		f.began = time.Now()
		f.tries = map[string][]time.Duration{}
	}
	object := strings.TrimSuffix(r.URL.Path, "/status")
	passed := time.Since(f.began)
	f.tries[object] = append(f.tries[object], passed)
	return passed < f.For
}

// Tries counts the requests for each object, by its path, from one time after its first one until another.
func (f *Refusing) Tries(from, until time.Duration) map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	counts := map[string]int{}
	for object, times := range f.tries {
		counts[object] = len(slices.DeleteFunc(slices.Clone(times), func(at time.Duration) bool {
			return at-times[0] < from || at-times[0] >= until
		}))
	}
	return counts
}

// AssertQuiet asserts that there were requests, and for each object at least that many and at most ten in the first ten
// seconds after its first one. On a busy machine an object may have its first one late: where half of the time of refusals
// has passed by then, one is enough. It returns the number of objects.
func (f *Refusing) AssertQuiet(t testing.TB, atLeast int) (objects int) {
	t.Helper()
	tries := f.Tries(0, quietTime)
	assert.NotEmpty(t, tries)
	for object, count := range tries {
		if f.isEarly(object) {
			assert.GreaterOrEqual(t, count, atLeast, object)
		}
		assert.LessOrEqual(t, count, mostTries, object)
	}
	return len(tries)
}

// isEarly reports whether the first request for an object came in the first half of the time of refusals.
func (f *Refusing) isEarly(object string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries[object][0] < f.For/2
}

// Over reports whether the time of refusals is over.
func (f *Refusing) Over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.began.IsZero() && time.Since(f.began) >= f.For
}
