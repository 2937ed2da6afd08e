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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/later"
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
	err   error
	asked atomic.Int64
}

func (a *answering) List(context.Context, client.ObjectList, ...client.ListOption) error {
	a.asked.Add(1)
	return a.err
}

// A cache that is not filled in time is asked again with the next question, while the clock of what is remembered stands still.
func TestACacheThatIsFilledLateIsUsed(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(kind, meta.RESTScopeNamespace)
	f := &filling{}
	still := clocktesting.NewFakeClock(time.Unix(0, 0))
	given := func(answer error) func() error {
		k := newKinds(Options{Cache: informing{filling: f}, Live: &answering{err: answer}, Mapper: mapper, Clock: still}, newPatience(still))
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

// A server that is busy for a moment is asked again after two seconds, and one that refuses after ten. Until then callers
// are told when.
func TestAServerThatDidNotAnswerIsAskedAgainSoon(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(kind, meta.RESTScopeNamespace)
	gone := errors.New("the connection is gone")
	internal := apierrors.NewInternalError(errors.New("the conversion failed"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", nil)
	for name, test := range map[string]struct {
		answer      error
		wait, until time.Duration // wait is 0 if the error lasts
	}{
		"no answer": {gone, 2 * time.Second, 2 * time.Second},
		"internal":  {internal, 10 * time.Second, 10 * time.Second},
		"forbidden": {forbidden, 0, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			server := &answering{err: test.answer}
			k := newKinds(Options{Cache: informing{filling: &filling{}}, Live: server, Mapper: mapper, Clock: clock}, newPatience(clock))
			for range 3 {
				_, err := k.get(t.Context(), kind.GroupKind())
				require.ErrorIs(t, err, test.answer)
				wait, passes := later.Wait(err, clock.Now())
				assert.Equal(t, test.wait > 0, passes)
				assert.Equal(t, test.wait, wait)
			}
			assert.EqualValues(t, 1, server.asked.Load())
			clock.Step(test.until + time.Second)
			_, err := k.get(t.Context(), kind.GroupKind())
			require.ErrorIs(t, err, test.answer)
			assert.EqualValues(t, 2, server.asked.Load())

			for range 10 {
				clock.Step(test.until + time.Minute/10)
				_, err = k.get(t.Context(), kind.GroupKind())
			}
			require.ErrorIs(t, err, test.answer)
			_, passes := later.Wait(err, clock.Now())
			assert.False(t, passes, "a silence of a minute is a failure")
		})
	}
}
