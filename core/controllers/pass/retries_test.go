package pass

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRetries(t *testing.T) {
	one := reconcile.Request{NamespacedName: types.NamespacedName{Name: "one"}}
	other := reconcile.Request{NamespacedName: types.NamespacedName{Name: "other"}}
	t.Run("the default is controller-runtime's", func(t *testing.T) {
		o := Settings{}.Options(3)
		assert.Nil(t, o.RateLimiter)
		assert.Equal(t, 3, o.MaxConcurrentReconciles)
		assert.Equal(t, 7, Settings{Workers: 7}.Options(3).MaxConcurrentReconciles)
	})
	t.Run("an object's pauses double up to the longest", func(t *testing.T) {
		l := Settings{Retries: Retries{BaseDelay: time.Second, MaxDelay: 3 * time.Second}}.Options(1).RateLimiter
		require.NotNil(t, l)
		for _, want := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
			assert.Equal(t, want, l.When(one))
		}
		assert.Equal(t, time.Second, l.When(other))
		l.Forget(one)
		assert.Equal(t, time.Second, l.When(one))
	})
	t.Run("what is left open has its default", func(t *testing.T) {
		l := Settings{Retries: Retries{MaxDelay: time.Minute}}.Options(1).RateLimiter
		assert.Equal(t, 5*time.Millisecond, l.When(one))
	})
	t.Run("all objects share a rate", func(t *testing.T) {
		l := Settings{Retries: Retries{BaseDelay: time.Millisecond, QPS: 0.01, BucketSize: 1}}.Options(1).RateLimiter
		assert.Equal(t, time.Millisecond, l.When(one))
		assert.Greater(t, l.When(other), 50*time.Second)
	})
}
