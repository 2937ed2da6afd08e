package manager

import (
	"context"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/transport"
)

// shortestLimit is the shortest time limit of a write: without it, settings that leave no time between two leaders
// would end every write.
const shortestLimit = 500 * time.Millisecond

// certificateWriteLimit is the time limit of a write of certificates. Every replica writes them, leader or not, in the
// version that it has read. A busy API server needs seconds to store a CRD of some 100 KiB.
const certificateWriteLimit = 30 * time.Second

// deadline limits the duration of every write on both sides: the client stops waiting, and the API server is given a
// timeout. Reads and watches are not limited.
//
// A write that a former leader has begun must not happen after a new leader has read the cluster. The leader gives up
// RenewDeadline after its first failed attempt to renew, which is at most RetryPeriod after its last renewal. The next
// one starts LeaseDuration after that renewal, or up to a second earlier, because the Lease stores whole seconds.
// Between the two, every write under way has to end.
type deadline struct {
	next  http.RoundTripper
	limit time.Duration
}

// handoverTime returns the time from the end of one leader to the start of the next.
func (e Election) handoverTime() time.Duration {
	return e.LeaseDuration - time.Second - e.RenewDeadline - e.RetryPeriod
}

// writeLimit returns the time limit of a write. It leaves a fifth of the time between two leaders for clocks and
// networks: 4 s by default.
func (e Election) writeLimit() time.Duration {
	return max(e.handoverTime()*4/5, shortestLimit)
}

func limitWrites(limit time.Duration) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper { return deadline{next: next, limit: limit} }
}

// RoundTrip implements http.RoundTripper.
func (d deadline) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return d.next.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeout(request.Context(), d.limit)
	limited := request.Clone(ctx)
	query := limited.URL.Query()
	if !query.Has("timeout") {
		query.Set("timeout", d.limit.String())
		limited.URL.RawQuery = query.Encode()
	}
	response, err := d.next.RoundTrip(limited)
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = body{ReadCloser: response.Body, done: cancel}
	return response, nil
}

// body keeps the context alive until the response is read.
type body struct {
	io.ReadCloser
	done context.CancelFunc
}

// Close implements io.Closer.
func (b body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
