package sidecarterminator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"

	"github.com/flotilla-project/flotilla/jobs/internal/sidecarterminator/plan"
)

// withOwnCache starts a cache and returns the manager with it in place of its own: other controllers of the operator want
// other pods, and this one wants none while its feature gate is off.
func withOwnCache(ctx context.Context, mgr ctrl.Manager, namespace string) (ctrl.Manager, error) {
	o := fastclient.CacheOptions(namespace, map[client.Object]cache.ByObject{&corev1.Pod{}: Pods(namespace)})
	own, err := optional.StartCache(ctx, mgr, o)
	if err != nil {
		return nil, fmt.Errorf("cache pods with sidecars: %w", err)
	}
	return optional.WithCache(mgr, own), nil
}

// Pods returns the settings of the cache of pods, of one namespace or of all when it is empty. No selector finds marks
// in the environment of containers, but the server leaves out all pods that are always restarted, and pods that have
// not begun: of services and agents nothing is sent. Of the others, pods without sidecars are kept as their names.
func Pods(namespace string) cache.ByObject {
	selectors := []fields.Selector{
		fields.OneTermNotEqualSelector("spec.restartPolicy", string(corev1.RestartPolicyAlways)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodPending)),
	}
	if namespace != "" {
		selectors = append(selectors, fields.OneTermEqualSelector("metadata.namespace", namespace))
	}
	return cache.ByObject{Field: fields.AndSelectors(selectors...), Transform: Trim}
}

// Trim keeps of a pod with sidecars the fields that fastclient.TrimPod keeps, and its restart policy. Of
// other pods it keeps the fields that identify them.
func Trim(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // trimmed already, or DeletedFinalStateUnknown
	}
	if !plan.HasSidecars(pod) {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace:       pod.Namespace,
			Name:            pod.Name,
			UID:             pod.UID,
			ResourceVersion: pod.ResourceVersion,
		}}, nil
	}
	policy := pod.Spec.RestartPolicy
	if _, err := fastclient.TrimPod(pod); err != nil {
		return nil, err
	}
	pod.Spec.RestartPolicy = policy
	return pod, nil
}
