package nodeimage

import (
	"sync"
	"time"
)

// answers caches the server's answers about whether objects exist. NodeImages share secrets and jobs, so that the
// server is asked for each of them once in a while and not once for each node.
type answers[K comparable] struct {
	age time.Duration // how long an answer is valid

	mu    sync.Mutex
	known map[K]answer
}

type answer struct {
	there bool
	at    time.Time
}

// recall returns an answer that is not too old.
func (a *answers[K]) recall(key K, now time.Time) (there, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, known := a.known[key]
	return last.there, known && now.Sub(last.at) < a.age
}

// note caches an answer and drops those that are too old.
func (a *answers[K]) note(key K, there bool, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil {
		a.known = map[K]answer{}
	}
	for other, old := range a.known {
		if now.Sub(old.at) >= a.age {
			delete(a.known, other)
		}
	}
	a.known[key] = answer{there, now}
}
