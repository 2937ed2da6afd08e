package nodeimage

import (
	"sync"
	"time"
)

// answers are what the server said about whether objects are there. NodeImages share secrets and jobs, so that
// the server is asked for each of them once in a while and not once for each node.
type answers[K comparable] struct {
	age time.Duration // how long an answer holds

	mu    sync.Mutex
	known map[K]answer
}

type answer struct {
	there bool
	at    time.Time
}

// recall returns an answer that still holds.
func (a *answers[K]) recall(key K, now time.Time) (there, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, known := a.known[key]
	return last.there, known && now.Sub(last.at) < a.age
}

// note keeps an answer and forgets those that do not hold any more.
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
