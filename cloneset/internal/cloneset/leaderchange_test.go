package cloneset_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// A leader is cut off from its Lease in the middle of a batch. Its writes that are under way arrive as
// late as they can, with nobody there to hear the answers, and the watch of the next leader is late
// too. No pod is made twice, none too many is out of service, and the rollout ends as if nothing had
// happened.
func TestALeaderLosesItsLeaseInTheMiddleOfABatch(t *testing.T) {
	const wanted, maxUnavailable = 6, 2
	givenNodes(t, simnodes.Options{Bind: true})
	c := env.Client(t)
	set := newSet(env.Namespace(t), wanted, v1beta1.InPlaceIfPossible, maxUnavailable)
	for _, rollout := range []struct {
		name  string
		ready int
		begin func()
	}{
		{"scale-up", 0, func() { require.NoError(t, c.Create(t.Context(), set)) }},
		{"in place", wanted - maxUnavailable, func() { edit(t, c, set, image("app:2")) }},
		{"recreation", wanted - maxUnavailable, func() { edit(t, c, set, argument("new")) }},
	} {
		t.Run(rollout.name, func(t *testing.T) {
			history := faults.Record(t, env, set.Namespace)
			landed := changeLeader(t, set.Namespace, 2, rollout.begin)
			settles(t, c, set)
			assert.Positive(t, landed(), "no write was under way")
			history.Replay(t, func(pods []*corev1.Pod) {
				active, available := countPods(pods)
				assert.LessOrEqual(t, active, wanted)
				assert.GreaterOrEqual(t, available, rollout.ready)
			})
			assertWanted(t, set)
			assertCalm(t, c, set)
		})
	}
}

// changeLeader begins something with two replicas and cuts the leader off from its Lease after a number
// of writes. It returns once the other leads, with what counts the writes that arrived after the cut.
func changeLeader(t *testing.T, namespace string, after int, begin func()) (landed func() int64) {
	t.Helper()
	l := &badLine{left: after, opens: make(chan struct{})}
	t.Cleanup(l.arriving.Wait)
	both := newReplicas(t, namespace)
	both.start(t, l.first)
	leader := both.leader(t, "")
	both.start(t, l.second)
	begin()
	both.leader(t, leader)
	return l.landed.Load
}

// badLine is how two replicas reach the server. For the first one it goes bad.
type badLine struct {
	mu   sync.Mutex
	left int // writes until it goes bad

	bad      atomic.Bool
	landed   atomic.Int64
	arriving sync.WaitGroup
	opens    chan struct{}
	opened   sync.Once
}

// first passes requests on until the line is bad: then no Lease is reached any more, and writes arrive just
// before their time is up.
func (l *badLine) first(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	switch {
	case isLease(r) && l.bad.Load():
		return nil, faults.ErrCut
	case !faults.IsWrite(r) || isLease(r) || l.passes():
		return next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	limit, _ := r.Context().Deadline()
	l.arriving.Go(func() {
		<-time.After(time.Until(limit) * 9 / 10)
		late := r.Clone(context.WithoutCancel(r.Context()))
		late.Body = io.NopCloser(bytes.NewReader(body))
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

func (l *badLine) passes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left--
	if l.left < 0 {
		l.bad.Store(true)
	}
	return l.left >= 0
}

// second delivers events of pods that come after the line went bad only half a second after this replica
// has become leader.
func (l *badLine) second(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	response, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if faults.IsPodWatch(r) {
		response.Body = heldBody{response.Body, &l.bad, l.opens}
	}
	if isLease(r) && r.Method == http.MethodPut && response.StatusCode == http.StatusOK {
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
