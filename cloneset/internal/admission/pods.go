package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CachedPods looks into the operator's cache, and asks the server about pods that are not there: the cache
// may be behind, and it leaves out pods without the label by which CloneSet knows its own.
type CachedPods struct {
	Cache, Server client.Reader
}

// Pod returns the pod, or the error of the server.
func (p CachedPods) Pod(ctx context.Context, key client.ObjectKey) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := p.Cache.Get(ctx, key, pod)
	if apierrors.IsNotFound(err) {
		err = p.Server.Get(ctx, key, pod)
	}
	if err != nil {
		return nil, err
	}
	return pod, nil
}
