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
	// maxReview is the size of the largest admission request in bytes: two objects of 3 MiB, the API server's limit,
	// and the rest of the AdmissionReview.
	maxReview = 7 << 20
	// maxConversion is the size of the largest conversion request in bytes. All objects of one list are converted in
	// one request: some ten thousand sets.
	maxConversion = 64 << 20
	// maxReviews is the size in bytes of all admission requests that are handled at the same time.
	maxReviews = 64 << 20
	// readTimeout is how long a client may take to send a request.
	readTimeout = 10 * time.Second

	questionsPerSecond = 50
	questionsAtOnce    = 100
)

// QueryLimiter returns a limiter of how often webhooks send requests to the cluster on behalf of their clients, which
// need not be the API server. Callers should wait for it with a deadline.
func QueryLimiter() *rate.Limiter { return rate.NewLimiter(questionsPerSecond, questionsAtOnce) }

// Limit bounds the size of requests: of one, and of all that are handled at the same time.
type Limit struct {
	one  int64
	free *semaphore.Weighted
}

// Reviews returns the limit of a server that answers admission requests.
func Reviews() Limit { return newLimit(maxReview, maxReviews) }

// newLimit returns a limit in bytes for one request and for all together.
func newLimit(one, all int64) Limit { return Limit{one: one, free: semaphore.NewWeighted(all)} }

// Handle refuses bodies that are too large with status 413 and reads the others into memory. A request waits while
// those before it use up the limit for all.
func (l Limit) Handle(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := r.ContentLength
		if size < 0 { // unknown
			size = l.one
		}
		if size > l.one {
			l.refuse(w)
			return
		}
		if l.free.Acquire(r.Context(), size) != nil {
			return // the client has closed the connection
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

// read returns the body, unless it takes longer than readTimeout.
func (l Limit) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection := http.NewResponseController(w)
	// Response writers of tests have no deadlines.
	_ = connection.SetReadDeadline(time.Now().Add(readTimeout)) //nolint:forbidigo // the kernel knows this clock alone
	defer func() { _ = connection.SetReadDeadline(time.Time{}) }()
	return io.ReadAll(http.MaxBytesReader(w, r.Body, l.one))
}
