package faults

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// BadLine is how two replicas of an operator reach the server. For the first one it goes bad.
type BadLine struct {
	mu   sync.Mutex
	left int // writes until it goes bad

	bad      atomic.Bool
	landed   atomic.Int64
	arriving sync.WaitGroup
	opens    chan struct{}
	opened   sync.Once
}

// NewBadLine returns a line that goes bad for the first replica after so many of its writes.
func NewBadLine(writes int) *BadLine { return &BadLine{left: writes, opens: make(chan struct{})} }

// First passes requests on until the line is bad: then no Lease is reached any more, and writes arrive just
// before their time is up.
func (l *BadLine) First(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	switch {
	case IsLease(r) && l.bad.Load():
		return nil, ErrCut
	case !IsWrite(r) || IsLease(r) || l.passes():
		return next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	limit, _ := r.Context().Deadline()
	late := r.Clone(context.WithoutCancel(r.Context()))
	late.Body = io.NopCloser(bytes.NewReader(body))
	l.arriving.Go(func() {
		<-time.After(time.Until(limit) * 9 / 10)
		if response, err := next.RoundTrip(late); err == nil {
			_ = response.Body.Close()
			if response.StatusCode < http.StatusMultipleChoices {
				l.landed.Add(1)
			}
		}
	})
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Wait waits until the writes that arrive late have been answered.
func (l *BadLine) Wait() { l.arriving.Wait() }

// Landed returns how many writes the server has taken that arrived after the line went bad.
func (l *BadLine) Landed() int64 { return l.landed.Load() }

// IsLease reports whether the request is about a Lease.
func IsLease(r *http.Request) bool { return strings.Contains(r.URL.Path, "/leases") }

func (l *BadLine) passes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left--
	if l.left < 0 {
		l.bad.Store(true)
	}
	return l.left >= 0
}

// Second delivers events of pods that come after the line went bad only half a second after this replica
// has become leader.
func (l *BadLine) Second(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	response, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if IsPodWatch(r) {
		response.Body = heldBody{response.Body, &l.bad, l.opens}
	}
	if IsLease(r) && r.Method == http.MethodPut && response.StatusCode == http.StatusOK {
		l.opened.Do(func() { time.AfterFunc(time.Second/2, func() { close(l.opens) }) })
	}
	return response, nil
}

// heldBody delivers what arrives while it is held only when it opens.
type heldBody struct {
	io.ReadCloser
	held  *atomic.Bool
	opens <-chan struct{}
}

func (b heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.held.Load() {
		<-b.opens
	}
	return n, err
}
