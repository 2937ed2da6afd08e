package memory

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Key is an object. One that is made anew under a name is another one.
type Key struct {
	types.NamespacedName
	UID types.UID
}

// KeyOf returns the key of an object.
func KeyOf(o metav1.Object) Key {
	return Key{types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}, o.GetUID()}
}

// Objects remembers a value of each object, at most one of a name. The zero value remembers nothing and is ready for
// use, also by several goroutines at a time.
type Objects[T any] struct {
	// Ended, unless nil, gets what is remembered no longer because the object was forgotten or made anew. It must not use
	// this memory.
	Ended func(of Key, value T)

	mu    sync.Mutex
	known map[types.NamespacedName]record[T]
}

type record[T any] struct {
	uid   types.UID
	value T
}

// Get returns what is remembered of the object, and whether anything is.
func (m *Objects[T]) Get(of Key) (value T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.known[of.NamespacedName]; ok && r.uid == of.UID {
		return r.value, true
	}
	return value, false
}

// Set remembers the value of the object.
func (m *Objects[T]) Set(of Key, value T) {
	m.Change(of, func(T) (T, bool) { return value, true })
}

// Change replaces what is remembered of the object, the zero value where nothing is, by what the function returns, or
// drops it where that is not to be kept. Nobody else reads or writes the memory meanwhile, nor may the function.
func (m *Objects[T]) Change(of Key, change func(T) (value T, keep bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.known[of.NamespacedName]
	if ok && r.uid != of.UID {
		m.end(of.NamespacedName)
		r, ok = record[T]{}, false
	}
	value, keep := change(r.value)
	switch {
	case keep && m.known == nil:
		m.known = map[types.NamespacedName]record[T]{of.NamespacedName: {of.UID, value}}
	case keep:
		m.known[of.NamespacedName] = record[T]{of.UID, value}
	case ok:
		delete(m.known, of.NamespacedName)
	}
}

// Forget drops what is remembered of the object of the name, which is gone.
func (m *Objects[T]) Forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end(name)
}

func (m *Objects[T]) end(name types.NamespacedName) {
	r, ok := m.known[name]
	if !ok {
		return
	}
	delete(m.known, name)
	if m.Ended != nil {
		m.Ended(Key{name, r.uid}, r.value)
	}
}
