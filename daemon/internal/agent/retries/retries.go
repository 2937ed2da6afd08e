// Package retries has the pauses between failed passes of the agent's controllers.
package retries

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

// first and longest are the pauses after failed passes, which grow twofold. After hours without an API server no agent
// waits long: nothing else may bring the result of a pull or of a stop to the server.
const first, longest = 500 * time.Millisecond, 55 * time.Second

// Limiter returns the pauses of one controller.
func Limiter() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](first, longest)
}
