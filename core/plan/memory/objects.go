package memory

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Key is an object. A later object of the same name is another one.
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
	// Ended, unless nil, gets the value of an object that was forgotten or made again under its name. It must not use this
	// memory.
	Ended func(of Key, value T)

	mu    sync.Mutex
	known map[types.NamespacedName]record[T]
}

type record[T any] struct {
	uid   types.UID
	value T
}

// Get returns the remembered value of the object, and whether there is one.
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

// Change replaces the remembered value of the object, or the zero value if there is none, by the result of the
// function. It drops the value if keep is false. No other call reads or writes the memory during that time, and the
// function must not either.
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

// Forget drops the remembered value of the object of the name, which is gone.
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
