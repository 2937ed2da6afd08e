package workloadspread

import (
	"slices"
	"strings"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
)

// Pods returns the cache of pods, in one namespace or, when it is empty, in all.
func Pods(namespace string) cache.ByObject {
	return fastclient.Within(namespace, cache.ByObject{Transform: trimPod})
}

// Allowances returns the cache of ConfigMaps: the one in the operator's own namespace that allows further kinds.
func Allowances(system string) cache.ByObject {
	return cache.ByObject{Namespaces: map[string]cache.Config{
		system: {FieldSelector: fields.OneTermEqualSelector("metadata.name", workloads.ConfigMapName)},
	}}
}

// trimPod keeps the fields of a pod that the plan reads: identity, labels, our annotations and the controller; of the spec
// the fields about nodes; of the status phase, conditions and restarts. A pod of a built-in DaemonSet or of a node, for
// which no webhook is called, keeps its name only.
func trimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil // trimmed already, or DeletedFinalStateUnknown
	}
	kept := metav1.ObjectMeta{
		Namespace:       unique.Make(pod.Namespace).Value(),
		Name:            pod.Name,
		UID:             pod.UID,
		ResourceVersion: pod.ResourceVersion,
	}
	switch owner := metav1.GetControllerOf(pod); {
	case owner == nil: // the scale of a custom workload may select it
	case owner.Kind == "Node", owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, appsv1.GroupName+"/"):
		return &metav1.PartialObjectMetadata{ObjectMeta: kept}, nil
	default:
		kept.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	kept.CreationTimestamp = pod.CreationTimestamp
	kept.DeletionTimestamp = pod.DeletionTimestamp
	kept.Labels = pod.Labels
	for _, key := range []string{v1beta1.MatchedAnnotation, v1beta1.ReplacedCostAnnotation, contract.PodDeletionCostAnnotation} {
		if value, ok := pod.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&kept, key, value)
		}
	}
	out := &corev1.Pod{ObjectMeta: kept}
	out.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName, Tolerations: pod.Spec.Tolerations}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		out.Spec.Affinity = &corev1.Affinity{NodeAffinity: a.NodeAffinity}
	}
	out.Status.Phase = pod.Status.Phase
	out.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(c corev1.PodCondition) bool {
		return c.Type != corev1.PodReady && c.Type != corev1.PodScheduled
	})
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		out.Status.ContainerStatuses = append(out.Status.ContainerStatuses, corev1.ContainerStatus{
			Name:         c.Name,
			Ready:        c.Ready,
			RestartCount: c.RestartCount,
		})
	}
	return out, nil
}
