package admission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

const (
	// MaxReview is the size of the largest admission request in bytes: two objects of 3 MiB, the API server's
	// limit, and what else it says.
	MaxReview = 7 << 20
	// MaxConversion is the size of the largest conversion request in bytes. Everything that a client lists at
	// once is converted at once: some ten thousand sets.
	MaxConversion = 64 << 20
	// maxReviews is for all admission requests together.
	maxReviews = 64 << 20
	// patience is how long a caller may take to send what it has to say.
	patience = 10 * time.Second

	questionsPerSecond = 50
	questionsAtOnce    = 100
)

// Questions limits how often webhooks ask the cluster on behalf of their callers, who need not be the API
// server. Whoever waits for it should have a deadline.
func Questions() *rate.Limiter { return rate.NewLimiter(questionsPerSecond, questionsAtOnce) }

// Limit is how large requests may be: one of them, and those that are answered at the same time together.
type Limit struct {
	one  int64
	free *semaphore.Weighted
}

// Reviews returns the limit of a server that answers admission requests.
func Reviews() Limit { return NewLimit(MaxReview, maxReviews) }

// NewLimit returns a limit in bytes for one request and for all together.
func NewLimit(one, all int64) Limit { return Limit{one: one, free: semaphore.NewWeighted(all)} }

// Handle refuses bodies that are too large with status 413 and reads others whole. Requests wait as long as
// those before them fill what there is for all.
func (l Limit) Handle(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := r.ContentLength
		if size < 0 { // it does not say
			size = l.one
		}
		if size > l.one {
			l.refuse(w)
			return
		}
		if l.free.Acquire(r.Context(), size) != nil {
			return // the caller has gone
		}
		defer l.free.Release(size)
		body, err := l.read(w, r)
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			l.refuse(w)
		case err != nil:
			http.Error(w, "the request did not arrive whole", http.StatusBadRequest)
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		}
	})
}

func (l Limit) refuse(w http.ResponseWriter) {
	http.Error(w, fmt.Sprintf("the request is larger than %d bytes: whoever lists objects should ask for less at a time", l.one), http.StatusRequestEntityTooLarge)
}

// read returns the body, unless it takes too long to come.
func (l Limit) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection := http.NewResponseController(w)
	// Writers that know no deadlines are those of tests.
	_ = connection.SetReadDeadline(time.Now().Add(patience)) //nolint:forbidigo // the kernel knows this clock alone
	defer func() { _ = connection.SetReadDeadline(time.Time{}) }()
	return io.ReadAll(http.MaxBytesReader(w, r.Body, l.one))
}
