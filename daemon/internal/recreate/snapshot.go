package recreate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

// snapshot reads the input of the plan for one request. Its error satisfies IsNotFound only when the request is gone.
func (r *reconciler) snapshot(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	request, err := fastclient.Get[v1beta1.ContainerRecreateRequest](ctx, r.Reader, key)
	if err != nil {
		return plan.Snapshot{}, err
	}
	s := plan.Snapshot{
		Request: request,
		Now:     r.Clock.Now(),
		Clock:   r.clock,
	}
	if plan.Open(request) {
		s.FirstSeen, s.LastSign = r.memory.See(request, s.Now)
	} else {
		r.memory.Forget(key)
	}
	s.Refusals = r.KnownRefusals(request, nil, 0, s.Now)
	others, err := ofPod(ctx, r.Reader, request.Namespace, request.Labels[v1beta1.PodUIDLabel])
	if err != nil {
		return s, err
	}
	if s.Waits = plan.Waits(request, others); !s.Waits {
		s.Pod, err = r.pod(ctx, request)
	}
	return s, err
}

// pod returns the pod of the name that an active request has, nil when there is none. The cache holds next to nothing
// of most pods, so the server is asked: once per pass, for the request whose turn it is.
func (r *reconciler) pod(ctx context.Context, request *v1beta1.ContainerRecreateRequest) (*corev1.Pod, error) {
	if !plan.Active(request) {
		return nil, nil
	}
	key := types.NamespacedName{Namespace: request.Namespace, Name: request.Spec.PodName}
	pod := &corev1.Pod{}
	err := r.Live.Get(ctx, key, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get pod %s: %w", key, err)
	}
	return pod, nil
}
