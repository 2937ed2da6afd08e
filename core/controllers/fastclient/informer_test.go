package fastclient

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// A controller adds an index to an informer whose indexers another one reads; the race detector looks on.
func TestIndexersAreAddedWhileOthersAreRead(t *testing.T) {
	options := CacheOptions("", nil)
	require.NotNil(t, options.NewInformer)
	given := toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}
	informer := options.NewInformer(&toolscache.ListWatch{}, &corev1.Pod{}, 0, given)
	assert.Same(t, informer.GetIndexer(), informer.GetStore(), "there is one store")
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 1000 {
				assert.NotNil(t, informer.GetIndexer().GetIndexers()[toolscache.NamespaceIndex])
			}
		})
	}
	for i := range 100 {
		require.NoError(t, informer.AddIndexers(toolscache.Indexers{strconv.Itoa(i): toolscache.MetaNamespaceIndexFunc}))
	}
	readers.Wait()
	assert.Len(t, informer.GetIndexer().GetIndexers(), 101)
	assert.Len(t, given, 1, "what was given stays")
	require.ErrorContains(t, informer.AddIndexers(toolscache.Indexers{"0": toolscache.MetaNamespaceIndexFunc}), "indexer conflict")
	items, err := informer.GetIndexer().ByIndex("7", "shop")
	require.NoError(t, err)
	assert.Empty(t, items)
}
