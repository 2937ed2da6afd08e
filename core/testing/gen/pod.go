package gen

import (
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

// Namespace is the default namespace of all objects.
const Namespace = "default"

// Node is the default node of ready pods.
const Node = "node-1"

// Epoch returns the default creation time of all objects.
func Epoch() time.Time { return time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC) }

// UID returns the UID that builders give to an object of the name.
func UID(name string) types.UID {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // the hash never returns an error
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", h.Sum64()&0xffffffffffff))
}

// PodOption changes a pod under construction.
type PodOption func(*corev1.Pod)

// Pod returns a pending pod with the container main of image app:1, without node, labels or owner.
func Pod(name string, options ...PodOption) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:              name,
			Namespace:         Namespace,
			UID:               UID(name),
			ResourceVersion:   "1",
			Generation:        1,
			CreationTimestamp: metav1.NewTime(Epoch()),
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

// Template returns a pod template with the labels, annotations, finalizers and spec that the options give to a pod.
func Template(options ...PodOption) corev1.PodTemplateSpec {
	pod := Pod("template", options...)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      pod.Labels,
			Annotations: pod.Annotations,
			Finalizers:  pod.Finalizers,
		},
		Spec: pod.Spec,
	}
}

// FromTemplate gives the pod the template's labels, annotations, finalizers and spec.
func FromTemplate(t corev1.PodTemplateSpec) PodOption {
	return func(pod *corev1.Pod) {
		t := t.DeepCopy()
		pod.Labels = t.Labels
		pod.Annotations = t.Annotations
		pod.Finalizers = t.Finalizers
		pod.Spec = t.Spec
	}
}

// Namespaced puts the pod into a namespace.
func Namespaced(namespace string) PodOption {
	return func(pod *corev1.Pod) { pod.Namespace = namespace }
}

// Created sets the time of creation; the zero time unsets it.
func Created(at time.Time) PodOption {
	return func(pod *corev1.Pod) { pod.CreationTimestamp = metav1.NewTime(at) }
}

// OwnedBy makes the object the controller of the pod. An object without kind is taken for a
// workload of apps.kruise.io/v1beta1 whose kind is the name of its Go type.
func OwnedBy(owner action.Object) PodOption {
	gvk := owner.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		gvk = schema.GroupVersionKind{
			Group:   contract.AppsGroup,
			Version: "v1beta1",
			Kind:    reflect.TypeOf(owner).Elem().Name(),
		}
	}
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = append(pod.OwnerReferences, *metav1.NewControllerRef(owner, gvk))
	}
}

// Label sets a label.
func Label(key, value string) PodOption {
	return func(pod *corev1.Pod) { metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value) }
}

// Labels sets labels.
func Labels(labels map[string]string) PodOption {
	return func(pod *corev1.Pod) {
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		maps.Copy(pod.Labels, labels)
	}
}

// Annotation sets an annotation.
func Annotation(key, value string) PodOption {
	return func(pod *corev1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value) }
}

// Finalizer adds a finalizer.
func Finalizer(name string) PodOption {
	return func(pod *corev1.Pod) { pod.Finalizers = append(pod.Finalizers, name) }
}

// Revision sets the pod's revision, "<workload>-<hash>" or "<hash>".
func Revision(name string) PodOption { return Label(contract.RevisionLabel, name) }

// Lifecycle sets the pod's lifecycle state.
func Lifecycle(state string) PodOption { return Label(contract.LifecycleStateLabel, state) }

// SpecifiedDelete asks for the pod to be replaced.
func SpecifiedDelete() PodOption { return Label(contract.SpecifiedDeleteLabel, "true") }

// DeletionCost sets the pod's deletion cost, an int32 as text.
func DeletionCost(cost string) PodOption {
	return Annotation(contract.PodDeletionCostAnnotation, cost)
}

// Terminating begins the pod's deletion, at Epoch.
func Terminating() PodOption {
	return func(pod *corev1.Pod) {
		at := metav1.NewTime(Epoch())
		grace := int64(30)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
	}
}

// Change makes any other change.
func Change(change func(pod *corev1.Pod)) PodOption { return change }

// AwaitsResize has an update in place ask the node for the cpu of the pod's first container. The node puts that off; the
// container has so much.
func AwaitsResize(since time.Time, cpu string) PodOption {
	return Change(func(pod *corev1.Pod) {
		Annotation(contract.InPlaceUpdateStateAnnotation, fmt.Sprintf(`{"revision":"web-x","updateTimestamp":%[1]q,"lastContainerStatuses":null,`+
			`"updateResources":true,"containerBatchesRecord":[{"timestamp":%[1]q,"containers":[%[2]q]}]}`,
			since.UTC().Format(time.RFC3339), pod.Spec.Containers[0].Name))(pod)
		Condition(corev1.PodResizePending, corev1.ConditionTrue, since)(pod)
		pod.Status.Conditions[len(pod.Status.Conditions)-1].Reason = corev1.PodReasonDeferred
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name:        pod.Spec.Containers[0].Name,
			ContainerID: "containerd://1",
			Ready:       true,
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			Resources:   &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}
	})
}
