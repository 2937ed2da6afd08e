package admission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxReview is the size of the largest admission request in bytes: two objects of 3 MiB, the API server's limit,
	// and the rest of the AdmissionReview.
	maxReview = 7 << 20
	// maxConversion is the size of the largest conversion request in bytes. All objects of one list are converted in
	// one request: some ten thousand sets.
	maxConversion = 64 << 20
	// maxReviews is the size in bytes of all admission requests that are handled at the same time, and maxConversions of all
	// conversions.
	maxReviews, maxConversions = 64 << 20, 96 << 20
	// shareOfReviews is the size in bytes of all admission requests of one address that are handled at the same time. The
	// share of conversions is the size of one largest request.
	shareOfReviews = maxReviews / 2

	// portion is how many bytes of a request are counted, and read, at a time.
	portion = 64 << 10
	// portionTimeout is how long a client may take to send a portion, and readTimeout a whole request.
	portionTimeout = 3 * time.Second
	readTimeout    = 10 * time.Second

	questionsPerSecond = 50
	questionsAtOnce    = 100

	podReadsPerSecond = 400
	podReadsAtOnce    = 400
)

// QueryLimiter returns a limiter of how often webhooks send requests to the cluster on behalf of their clients, which
// need not be the API server. Callers should wait for it with a deadline.
func QueryLimiter() *rate.Limiter { return rate.NewLimiter(questionsPerSecond, questionsAtOnce) }

// PodReadLimiter returns a limiter of how often webhooks read a pod, or its node, for a request that is about the pod: an
// eviction reads once, a ContainerRecreateRequest three times. The API server itself reads and writes more for either.
func PodReadLimiter() *rate.Limiter { return rate.NewLimiter(podReadsPerSecond, podReadsAtOnce) }

// Limit bounds the size of requests: of one, of all of one address, and of all that are handled at the same time. Bytes
// count as they arrive, so that a client takes away from others only the bytes that it has sent, even if it has announced
// more.
type Limit struct {
	one  int64
	room *room
}

// Reviews returns the limit of a server that answers admission requests.
func Reviews() Limit { return newLimit(maxReview, shareOfReviews, maxReviews) }

// newLimit returns a limit in bytes for one request, for all requests of one address and for all together. Each is at
// least as large as the one before.
func newLimit(one, share, all int64) Limit { return Limit{one: one, room: newRoom(share, all)} }

// Handle refuses bodies that are too large with status 413 and reads the others into memory. A request waits while others
// use up the limit for all, or others of its address use up their share.
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
		address, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			address = r.RemoteAddr
		}
		guest := l.room.enter(address, size)
		defer l.room.leave(guest)
		body, err := l.read(w, r, guest)
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			l.refuse(w)
		case err != nil:
			w.Header().Set("Connection", "close") // the server would wait for the rest of the body
			http.Error(w, "the request is incomplete: "+err.Error(), http.StatusBadRequest)
		default:
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
		}
	})
}

func (l Limit) refuse(w http.ResponseWriter) {
	http.Error(w, fmt.Sprintf("the request is larger than %d bytes: list objects in pages, such as with kubectl get --chunk-size=100", l.one), http.StatusRequestEntityTooLarge)
}

// read returns the body, unless it, or a portion of it, takes too long. The time that it waits for room does not count.
func (l Limit) read(w http.ResponseWriter, r *http.Request, guest *guest) ([]byte, error) {
	connection := http.NewResponseController(w)
	from := http.MaxBytesReader(w, r.Body, l.one)
	var body bytes.Buffer
	for left := readTimeout; ; {
		n := max(min(portion, guest.size-int64(body.Len())), 1) // one more to see the end, or that it is too large
		if err := l.room.take(r.Context(), guest, min(int64(body.Len())+n, guest.size)); err != nil {
			return nil, err
		}
		begun := time.Now() //nolint:forbidigo // the kernel knows this clock alone
		// Response writers of tests have no deadlines.
		_ = connection.SetReadDeadline(begun.Add(min(portionTimeout, left)))
		_, err := io.CopyN(&body, from, n)
		left -= time.Since(begun) //nolint:forbidigo // the same
		switch {
		case errors.Is(err, io.EOF):
			_ = connection.SetReadDeadline(time.Time{}) // for the next request of the connection
			return body.Bytes(), nil
		case err != nil:
			return nil, err
		case left <= 0:
			return nil, fmt.Errorf("it took longer than %s", readTimeout)
		}
	}
}
