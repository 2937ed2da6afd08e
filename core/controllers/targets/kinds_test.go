package targets

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

// filling is an informer that takes a while.
type filling struct {
	cache.Informer
	filled atomic.Bool
}

func (f *filling) HasSynced() bool { return f.filled.Load() }

// informing is a cache with one informer.
type informing struct {
	cache.Cache
	*filling
}

func (i informing) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return i.filling, nil
}

// answering is a server that gives one answer.
type answering struct {
	client.Reader
	err error
}

func (a answering) List(context.Context, client.ObjectList, ...client.ListOption) error { return a.err }

// A cache that is not filled in time is asked again with the next question, while the clock of what is remembered stands still.
func TestACacheThatIsFilledLateIsUsed(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(kind, meta.RESTScopeNamespace)
	f := &filling{}
	still := clocktesting.NewFakeClock(time.Unix(0, 0))
	given := func(answer error) func() error {
		k := newKinds(Options{Cache: informing{filling: f}, Live: answering{err: answer}, Mapper: mapper, Clock: still})
		return func() error {
			_, err := k.get(t.Context(), kind.GroupKind())
			return err
		}
	}
	ask := given(nil)
	require.ErrorIs(t, ask(), context.DeadlineExceeded)
	f.filled.Store(true)
	// The next question may still get the answer of the first one, which ends by its own clock.
	await.Until(t, func(check *assert.CollectT) { assert.NoError(check, ask()) })

	denied := errors.New("no right")
	ask = given(denied)
	require.ErrorIs(t, ask(), denied)
}
