package faults

import (
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fault is what happens to a write.
type Fault string

// The faults.
const (
	None       Fault = ""
	Conflict   Fault = "conflict"
	TooMany    Fault = "too many requests"
	Failure    Fault = "internal error"
	AnswerLost Fault = "answer lost"
)

const (
	// shakyWrites is the number of writes after which the server has recovered.
	shakyWrites = 40
	// lateness is the delay of watches after an answer was lost.
	lateness = 300 * time.Millisecond
)

// Shaky is a server that fails some of its first writes.
type Shaky struct {
	late  atomic.Int64
	mu    sync.Mutex
	ahead []Fault
	met   map[Fault]int
}

// NewShaky returns a Shaky whose seed determines which writes fail. The answer to the creation of the first pod, the
// second write after that of the revision, is always lost. The watch of pods is delayed then, so that a plan that
// assumes that the write has failed is made before the event.
func NewShaky(seed uint64) *Shaky {
	ahead := slices.Concat(slices.Repeat([]Fault{Conflict, Failure, AnswerLost}, 3), []Fault{TooMany})
	ahead = append(ahead, make([]Fault, shakyWrites-len(ahead))...)
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // tests want the same numbers again
	rng.Shuffle(len(ahead), func(i, j int) { ahead[i], ahead[j] = ahead[j], ahead[i] })
	return &Shaky{ahead: append([]Fault{None, AnswerLost}, ahead...), met: map[Fault]int{}}
}

// Met returns how often each fault has occurred so far.
func (s *Shaky) Met() map[Fault]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.met)
}

// Send returns the way to the server.
func (s *Shaky) Send(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if !IsWrite(r) {
		response, err := next.RoundTrip(r)
		if err == nil && IsPodWatch(r) {
			response.Body = lateBody{response.Body, &s.late}
		}
		return response, err
	}
	switch s.draw() {
	case Conflict:
		return answer(r, apierrors.NewConflict(schema.GroupResource{}, r.URL.Path, ErrCut))
	case TooMany:
		return answer(r, apierrors.NewTooManyRequests("too many", 1))
	case Failure:
		return answer(r, apierrors.NewInternalError(ErrCut))
	case AnswerLost:
		s.late.Store(time.Now().Add(lateness).UnixNano())
		response, err := next.RoundTrip(r)
		if err == nil {
			_ = response.Body.Close()
		}
		return nil, ErrCut
	default:
		return next.RoundTrip(r)
	}
}

func (s *Shaky) draw() Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ahead) == 0 {
		return None
	}
	next := s.ahead[0]
	s.ahead = s.ahead[1:]
	s.met[next]++
	return next
}

// lateBody delivers nothing before a point in time, in nanoseconds.
type lateBody struct {
	io.ReadCloser
	until *atomic.Int64
}

func (b lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	<-time.After(time.Until(time.Unix(0, b.until.Load())))
	return n, err
}
