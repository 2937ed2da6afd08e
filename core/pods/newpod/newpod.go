package newpod

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Options are the fields of a pod in addition to its template.
type Options struct {
	// Name and Namespace are the pod's; GenerateName may be empty.
	Name, GenerateName, Namespace string
	// Owner is the reference to the workload, as the controller.
	Owner metav1.OwnerReference
	// Labels override the labels of the template.
	Labels map[string]string
	// DefaultPullPolicy decides how a container without imagePullPolicy is read. With PullAlways it is written.
	DefaultPullPolicy podspec.DefaultPullPolicy
	// Lifecycle starts the pod in state PreparingNormal.
	Lifecycle bool
	// ReadinessGates are readiness gates, added where the template lacks them.
	ReadinessGates []corev1.PodConditionType
	// Now is the moment of the pass.
	Now time.Time
}

// FromTemplate is a new pod of the template. Control labels and annotations of the template are left out: the pod would
// be asked to go as soon as it has come, or have records of another one.
func FromTemplate(template *corev1.PodTemplateSpec, o Options) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            o.Name,
			GenerateName:    o.GenerateName,
			Namespace:       o.Namespace,
			Labels:          merged(without(template.Labels, contract.ControlLabels()), o.Labels),
			Annotations:     merged(without(template.Annotations, contract.ControlAnnotations())),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{o.Owner},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	if o.Lifecycle {
		pod.Labels[contract.LifecycleStateLabel] = contract.LifecyclePreparingNormal
		pod.Annotations[contract.LifecycleTimestampAnnotation] = o.Now.UTC().Format(time.RFC3339)
	}
	for _, readinessGate := range o.ReadinessGates {
		if !podstate.HasReadinessGate(pod, readinessGate) {
			pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: readinessGate})
		}
	}
	if o.DefaultPullPolicy == podspec.PullAlways {
		podspec.DefaultToPullAlways(&pod.Spec)
	}
	return pod
}

// without is the map without the keys, itself where it has none of them.
func without(m map[string]string, keys []string) map[string]string {
	if !slices.ContainsFunc(keys, func(key string) bool { _, ok := m[key]; return ok }) {
		return m
	}
	rest := maps.Clone(m)
	for _, key := range keys {
		delete(rest, key)
	}
	return rest
}

// merged is a new map with the entries of all maps; later ones win.
func merged(all ...map[string]string) map[string]string {
	size := 4 // for the entries that workloads add
	for _, m := range all {
		size += len(m)
	}
	out := make(map[string]string, size)
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}
