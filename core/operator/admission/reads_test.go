package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// countingReader finds everything.
type countingReader struct {
	client.Reader
	asked atomic.Int64
}

func (r *countingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	r.asked.Add(1)
	return nil
}

// Nobody finds out about a thousand pods at once by asking the webhook about each.
func TestReadsOfPodsAreLimited(t *testing.T) {
	server := &countingReader{}
	reader := LimitReads(server, QueryLimiter())
	var refused atomic.Int64
	var group sync.WaitGroup
	for range 1000 {
		group.Go(func() {
			if apierrors.IsTooManyRequests(reader.Get(t.Context(), client.ObjectKey{Name: "web"}, &corev1.Pod{})) {
				refused.Add(1)
			}
		})
	}
	group.Wait()
	assert.LessOrEqual(t, server.asked.Load(), int64(300))
	assert.GreaterOrEqual(t, server.asked.Load(), int64(100))
	assert.EqualValues(t, 1000, server.asked.Load()+refused.Load())
}
