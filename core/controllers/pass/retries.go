package pass

import (
	"cmp"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Retries is how soon a controller repeats passes that have ended with an error. Zero values leave it to
// controller-runtime: 5ms that double up to 1000s for each object, and no limit over all of them.
type Retries struct {
	// BaseDelay is the pause of an object after its first failure in a row. It doubles with each more, up to MaxDelay.
	BaseDelay, MaxDelay time.Duration
	// QPS is how many retries a second a controller makes over all objects, BucketSize how many at once. Both or none
	// are positive.
	QPS        float64
	BucketSize int
}

// limiter is nil for the default.
func (r Retries) limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	if r == (Retries{}) {
		return nil
	}
	each := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
		cmp.Or(r.BaseDelay, 5*time.Millisecond), cmp.Or(r.MaxDelay, 1000*time.Second))
	if r.QPS <= 0 || r.BucketSize <= 0 {
		return each
	}
	all := &workqueue.TypedBucketRateLimiter[reconcile.Request]{Limiter: rate.NewLimiter(rate.Limit(r.QPS), r.BucketSize)}
	return workqueue.NewTypedMaxOfRateLimiter(each, all)
}

// Options are the options of a controller with these settings, which reconciles so many objects at a time if the settings
// set no number.
func (s Settings) Options(workers int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: cmp.Or(s.Workers, workers), RateLimiter: s.Retries.limiter()}
}
