package fastclient

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
)

// newInformer makes an informer with indexers that may be read while others are added, as when a controller begins for a
// kind that another one reads already: the map that client-go hands out is the one that it changes.
func newInformer(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	inner := toolscache.NewSharedIndexInformer(from, example, resync, maps.Clone(indexers))
	return &informer{
		SharedIndexInformer: inner,
		store: &store{
			Indexer:  inner.GetIndexer(),
			inner:    inner,
			indexers: indexers,
		},
	}
}

type informer struct {
	toolscache.SharedIndexInformer

	store *store
}

// GetStore is part of toolscache.SharedInformer.
func (i *informer) GetStore() toolscache.Store { return i.store }

// GetIndexer is part of toolscache.SharedIndexInformer.
func (i *informer) GetIndexer() toolscache.Indexer { return i.store }

// AddIndexers is part of toolscache.SharedIndexInformer.
func (i *informer) AddIndexers(added toolscache.Indexers) error { return i.store.AddIndexers(added) }

// store is the informer's, with indexers of its own.
type store struct {
	toolscache.Indexer

	inner    toolscache.SharedIndexInformer
	mu       sync.Mutex
	indexers toolscache.Indexers // never changed, but replaced
}

// GetIndexers is part of toolscache.Indexer.
func (s *store) GetIndexers() toolscache.Indexers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.indexers
}

// AddIndexers is part of toolscache.Indexer.
func (s *store) AddIndexers(added toolscache.Indexers) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.inner.AddIndexers(added); err != nil {
		return err
	}
	all := make(toolscache.Indexers, len(s.indexers)+len(added))
	maps.Copy(all, s.indexers)
	maps.Copy(all, added)
	s.indexers = all
	return nil
}
