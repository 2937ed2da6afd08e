package launch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/daemon/internal/launch/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/podmarks"
)

// snapshot reads the input of the plan for one pod. Its error satisfies IsNotFound only when the pod is gone.
func (r *reconciler) snapshot(ctx context.Context, key types.NamespacedName) (plan.Snapshot, error) {
	pod, err := fastclient.Get[corev1.Pod](ctx, r.Reader, key)
	if err != nil {
		return plan.Snapshot{}, err
	}
	s := plan.Snapshot{Pod: pod, Now: r.Clock.Now()}
	s.Refusals = r.KnownRefusals(pod, nil, 0, s.Now)
	if !plan.NeedsConfigMap(pod) {
		return s, nil
	}
	s.ConfigMap, err = r.configMap(ctx, pod)
	return s, err
}

// configMap returns the ConfigMap with the pod's barriers, nil if there is none. The cache has those with our label
// only; one that others created with the name is found on the server.
func (r *reconciler) configMap(ctx context.Context, pod *corev1.Pod) (*corev1.ConfigMap, error) {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: podmarks.ConfigMapName(pod.Name)}
	m, err := fastclient.Get[corev1.ConfigMap](ctx, r.Reader, key)
	if apierrors.IsNotFound(err) && pod.DeletionTimestamp == nil {
		m = &corev1.ConfigMap{}
		err = r.Live.Get(ctx, key, m)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get config map %s: %w", key, err)
	}
	return m, nil
}
