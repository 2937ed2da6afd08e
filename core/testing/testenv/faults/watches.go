package faults

import (
	"io"
	"net/http"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// BreakPodWatches breaks the first watch of pods when that many bytes have been read, in the middle of an event, and
// refuses the next one because its resourceVersion is too old. refused counts the refused watches.
func BreakPodWatches(bytes int) (send Send, refused func() int64) {
	var watches, expired atomic.Int64
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !IsPodWatch(r) {
			return next.RoundTrip(r)
		}
		switch watches.Add(1) {
		case 1:
			response, err := next.RoundTrip(r)
			if err == nil {
				response.Body = &cutBody{ReadCloser: response.Body, left: bytes}
			}
			return response, err
		case 2:
			expired.Add(1)
			return answer(r, apierrors.NewResourceExpired("the server has forgotten"))
		}
		return next.RoundTrip(r)
	}, expired.Load
}

// cutBody ends with an error when this many bytes have been read.
type cutBody struct {
	io.ReadCloser
	left int
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, ErrCut
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
