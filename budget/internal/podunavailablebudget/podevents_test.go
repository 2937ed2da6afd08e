package podunavailablebudget

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// One owner that the API server takes long to return does not keep the numbers of other budgets old.
func TestAPodWithSlowOwnersDelaysNoOther(t *testing.T) {
	answered := make(chan struct{})
	w := newPodEvents(func(_ context.Context, pod *corev1.Pod) []*v1beta1.PodUnavailableBudget {
		if pod.Name == "slow" {
			<-answered
		}
		b := &v1beta1.PodUnavailableBudget{}
		b.Name = pod.Name
		return []*v1beta1.PodUnavailableBudget{b}
	})
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.run(ctx) }()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	for _, name := range []string{"slow", "quick"} {
		pod := &corev1.Pod{}
		pod.Name = name
		w.handler().Create(ctx, event.CreateEvent{Object: pod}, queue)
	}
	woken, _ := queue.Get()
	assert.Equal(t, "quick", woken.Name)
	close(answered)
	woken, _ = queue.Get()
	assert.Equal(t, "slow", woken.Name)
	end()
	assert.NoError(t, await.Receive(t, ended, "the workers end"))
}
