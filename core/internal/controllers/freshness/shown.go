package freshness

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answer is the object that the server returned for a write that the store does not show yet.
type answer struct {
	write
	uid    types.UID
	object client.Object // as the store will show it
}

// Over is the store with the answers to writes that it does not show yet. The tracker does not wait for writes that are
// read in this way. A store that the tracker does not know is returned as it is.
func (t *Tracker) Over(store toolscache.Indexer) toolscache.Indexer {
	for _, s := range t.sources {
		if any(s.store) == any(store) {
			s.mu.Lock()
			s.read = true
			s.mu.Unlock()
			return shown{Indexer: store, source: s}
		}
	}
	return store
}

// show keeps an answer until the store shows it, and reports whether it does: only whole objects of kinds that are read
// through Over are shown.
func (s *source) show(o client.Object) bool {
	if _, part := o.(*metav1.PartialObjectMetadata); part {
		return false
	}
	return s.keep(o, write{source: s, key: storeKey(o), version: o.GetResourceVersion()}, func(client.Object) {})
}

// showDeleted shows a deleted object as terminating until the store shows it so, or without it. Only of pods and claims
// it means nothing whether they are on their way out or gone already.
func (s *source) showDeleted(o client.Object) bool {
	switch o.(type) {
	case *corev1.Pod, *corev1.PersistentVolumeClaim:
		now := metav1.Now()
		w := write{
			source:  s,
			key:     storeKey(o),
			version: o.GetResourceVersion(),
			deleted: true,
		}
		return s.keep(o, w, func(o client.Object) { o.SetDeletionTimestamp(&now) })
	}
	return false
}

func (s *source) keep(o client.Object, w write, change func(client.Object)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.read || !isVersion(w.version) || !s.selects(o) {
		return false
	}
	if last, ok := s.answers[w.key]; ok && !w.deleted && atLeast(last.version, w.version) {
		return true
	}
	a := answer{
		write:  w,
		uid:    o.GetUID(),
		object: o.DeepCopyObject().(client.Object),
	}
	if s.settings.Transform != nil {
		trimmed, err := s.settings.Transform(a.object)
		whole, ok := trimmed.(client.Object)
		if err != nil || !ok {
			return false
		}
		a.object = whole
	}
	change(a.object)
	if s.answers == nil {
		s.answers = map[string]answer{}
	}
	s.answers[w.key] = a
	return true
}

// unshow forgets the answer under a key and returns the version that it had, empty if there was none.
func (s *source) unshow(key string) (version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version = s.answers[key].version
	delete(s.answers, key)
	return version
}

// outstanding are the answers that the store does not show yet. The others are dropped.
func (s *source) outstanding() []answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []answer
	version := s.version()
	for key, a := range s.answers {
		if a.reached(a.uid, version) {
			delete(s.answers, key)
			continue
		}
		all = append(all, a)
	}
	return all
}

// answer is the one under a key, if the store does not show it yet.
func (s *source) answer(key string) (client.Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.answers[key]
	if ok && a.reached(a.uid, s.version()) {
		delete(s.answers, key)
		ok = false
	}
	return a.object, ok
}

// seenIn reports whether a listed object shows the write, or a later one.
func (a *answer) seenIn(listed metav1.Object) bool {
	return atLeast(listed.GetResourceVersion(), a.version) && (!a.deleted || listed.GetUID() != a.uid || listed.GetDeletionTimestamp() != nil)
}

// shown is a store as plans see it. The answers are read before the store: a version that reaches the store in between is
// newer and wins.
type shown struct {
	toolscache.Indexer
	source *source
}

// List is part of toolscache.Store.
func (s shown) List() []any {
	unseen := s.source.outstanding()
	return s.merge(s.Indexer.List(), unseen, func(any) bool { return true })
}

// ByIndex is part of toolscache.Indexer.
func (s shown) ByIndex(name, value string) ([]any, error) {
	unseen := s.source.outstanding()
	items, err := s.Indexer.ByIndex(name, value)
	if err != nil {
		return nil, err
	}
	index := s.GetIndexers()[name]
	return s.merge(items, unseen, func(o any) bool {
		values, err := index(o)
		return err == nil && slices.Contains(values, value)
	}), nil
}

// GetByKey is part of toolscache.Store.
func (s shown) GetByKey(key string) (item any, exists bool, err error) {
	if o, ok := s.source.answer(key); ok {
		return o, true, nil
	}
	return s.Indexer.GetByKey(key)
}

// merge puts the answers in place of the listed versions of the same objects, and of former objects with the same name.
func (s shown) merge(items []any, unseen []answer, selects func(any) bool) []any {
	if len(unseen) == 0 {
		return items
	}
	replaced := make(map[types.UID]*answer, len(unseen))
	for i := range unseen {
		a := &unseen[i]
		replaced[a.uid] = a
		if former := s.source.get(a.key); former != nil && former.GetUID() != a.uid {
			replaced[former.GetUID()] = a
		}
	}
	newer := map[*answer]bool{}
	merged := make([]any, 0, len(items)+len(unseen))
	for _, item := range items {
		if o, ok := item.(metav1.Object); ok {
			if a := replaced[o.GetUID()]; a != nil {
				if !a.seenIn(o) {
					continue
				}
				newer[a] = true
			}
		}
		merged = append(merged, item)
	}
	for i := range unseen {
		if a := &unseen[i]; !newer[a] && selects(a.object) {
			merged = append(merged, a.object)
		}
	}
	return merged
}
