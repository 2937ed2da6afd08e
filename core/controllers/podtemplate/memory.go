package podtemplate

import (
	"crypto/sha256"
	"sync"

	"k8s.io/utils/lru"
)

// overhead is roughly the size of an answer without its text, in bytes.
const overhead = 256

// key is the hash of a template and its namespace.
type key [sha256.Size]byte

// memory is an LRU cache of answers, bounded in bytes.
type memory struct {
	mu      sync.Mutex
	limit   int
	size    int
	answers *lru.Cache
}

func newMemory(limit int) *memory {
	m := &memory{limit: limit}
	m.answers = lru.NewWithEvictionFunc(0, func(_ lru.Key, a any) { m.size -= sizeOf(a.(answer)) })
	return m
}

func (m *memory) get(k key) (answer, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.answers.Get(k)
	if !ok {
		return answer{}, false
	}
	return a.(answer), true
}

// add caches an answer unless it alone is larger than the memory.
func (m *memory) add(k key, a answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers.Remove(k)
	if sizeOf(a) > m.limit {
		return
	}
	m.size += sizeOf(a)
	m.answers.Add(k, a)
	for m.size > m.limit {
		m.answers.RemoveOldest()
	}
}

func sizeOf(a answer) int {
	size := overhead + len(a.defaulted)
	for _, cause := range a.causes {
		size += overhead + len(cause.Type) + len(cause.Field) + len(cause.Message)
	}
	return size
}
