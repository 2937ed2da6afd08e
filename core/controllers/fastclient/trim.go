package fastclient

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// longestMessage is how much is kept of what a kubelet says of a pod that has failed, in bytes.
const longestMessage = 256

// reservedEnvPrefix starts the names of environment variables whose plain value plans read.
const reservedEnvPrefix = "KRUISE_"

// Pods returns the cache of pods with labels that the selector matches, trimmed by TrimPod.
func Pods(selector labels.Selector) cache.ByObject {
	return cache.ByObject{Label: selector, Transform: TrimPod}
}

// WithLabel selects objects that have the label, whatever its value. It panics when the key is none: pass a constant.
func WithLabel(key string) labels.Selector {
	has, err := labels.NewRequirement(key, selection.Exists, nil)
	if err != nil {
		panic(err)
	}
	return labels.NewSelector().Add(*has)
}

// PodsWithLabel returns Pods for all pods that have the label, whatever its value.
func PodsWithLabel(key string) cache.ByObject { return Pods(WithLabel(key)) }

// PodsOf returns PodsWithLabel for a label that built-in kinds write too. Of pods whose controller is not of one of the
// API groups it keeps the name and that controller: they cost next to nothing, and are seen whole as soon as nobody
// owns them any more.
func PodsOf(label string, groups ...string) cache.ByObject {
	pods := PodsWithLabel(label)
	pods.Transform = func(object any) (any, error) {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return TrimPod(object)
		}
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || slices.Contains(groups, groupOf(owner.APIVersion)) {
			return TrimPod(object)
		}
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			DeletionTimestamp: pod.DeletionTimestamp, OwnerReferences: []metav1.OwnerReference{*owner},
		}}, nil
	}
	return pods
}

// Revisions returns the cache of ControllerRevisions. The data of those whose controlling owner is not of one of the
// API groups is dropped: other workloads' revisions cost next to nothing.
func Revisions(groups ...string) cache.ByObject {
	return cache.ByObject{Transform: func(object any) (any, error) {
		trimMeta(object)
		if r, ok := object.(*appsv1.ControllerRevision); ok {
			owner := metav1.GetControllerOfNoCopy(r)
			if owner != nil && !slices.Contains(groups, groupOf(owner.APIVersion)) {
				r.Data = runtime.RawExtension{}
			}
		}
		return object, nil
	}}
}

// Nodes returns the cache of nodes, trimmed by TrimNode. It holds all of them, also where an operator is restricted to
// one namespace.
func Nodes() cache.ByObject {
	return cache.ByObject{Transform: TrimNode, Field: fields.Everything()}
}

// Within restricts a cache of namespaced objects to one namespace; an empty one leaves it as it is.
func Within(namespace string, o cache.ByObject) cache.ByObject {
	if namespace != "" {
		o.Field = fields.OneTermEqualSelector("metadata.namespace", namespace)
	}
	return o
}

// Trim removes what no plan reads from any kind: the managed fields and what kubectl applied last.
// It fits cache.Options.DefaultTransform.
func Trim(object any) (any, error) {
	trimMeta(object)
	return object, nil
}

// TrimPod leaves of a pod what plans read. Of the metadata all but the managed fields and what
// kubectl applied last. Of the spec: the node, gates, volumes backed by claims, and of each container
// name, image, resources, restart and resize policy, and variables that take their value from elsewhere
// or whose name begins with KRUISE_. Of the status: phase, conditions but those of the steps of a start,
// of each container what runs in it and with which resources, of one that is not ready when its former run
// began and ended, and why a pod has failed, the message cut to its first 256 bytes. Strings that many pods have in common are kept once.
func TrimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		trimMeta(object)
		return object, nil
	}
	s, st := &pod.Spec, &pod.Status
	if s.RestartPolicy == "" { // which the server always sets: trimmed before
		return pod, nil
	}
	trimMeta(pod)
	shareMeta(&pod.ObjectMeta)
	pod.Spec = corev1.PodSpec{
		NodeName: shared(s.NodeName), ReadinessGates: shareGates(s.ReadinessGates), Volumes: claimVolumes(s.Volumes),
		Containers: trimContainers(s.Containers), InitContainers: trimContainers(s.InitContainers),
	}
	reason, message := whyFailed(st)
	pod.Status = corev1.PodStatus{
		ObservedGeneration: st.ObservedGeneration, Phase: shared(st.Phase),
		Conditions:            trimConditions(st.Conditions),
		ContainerStatuses:     trimStatuses(st.ContainerStatuses),
		InitContainerStatuses: trimStatuses(st.InitContainerStatuses),
	}
	pod.Status.Reason, pod.Status.Message = reason, message
	return pod, nil
}

// TrimNode leaves of a node its metadata, whether and how it takes pods, and its conditions and
// allocatable resources.
func TrimNode(object any) (any, error) {
	trimMeta(object)
	if node, ok := object.(*corev1.Node); ok {
		node.Spec = corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints, ProviderID: node.Spec.ProviderID}
		node.Status = corev1.NodeStatus{Conditions: node.Status.Conditions, Allocatable: node.Status.Allocatable}
	}
	return object, nil
}

func trimMeta(object any) {
	m, err := meta.Accessor(object)
	if err != nil {
		return // the mark of a deletion that the watch missed; it holds a trimmed object
	}
	m.SetManagedFields(nil)
	if annotations := m.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
}

// whyFailed returns what the kubelet says of a pod that has failed.
func whyFailed(s *corev1.PodStatus) (reason, message string) {
	if s.Phase != corev1.PodFailed {
		return "", ""
	}
	return shared(s.Reason), shared(begin(s.Message))
}

// begin returns at most the first 256 bytes of a text for people.
func begin(text string) string {
	if len(text) > longestMessage {
		return strings.ToValidUTF8(text[:longestMessage], "")
	}
	return text
}

func trimContainers(containers []corev1.Container) []corev1.Container {
	trimmed := make([]corev1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		trimmed[i] = corev1.Container{
			Name: shared(c.Name), Image: shared(c.Image),
			Resources: c.Resources, ResizePolicy: c.ResizePolicy, RestartPolicy: c.RestartPolicy,
			RestartPolicyRules: c.RestartPolicyRules,
		}
		for _, e := range c.Env {
			if e.ValueFrom != nil || strings.HasPrefix(e.Name, reservedEnvPrefix) {
				trimmed[i].Env = append(trimmed[i].Env, e)
			}
		}
	}
	return trimmed
}

func claimVolumes(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for _, v := range volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			kept = append(kept, v)
		}
	}
	return kept
}

func trimConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	unread := func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReadyToStartContainers || c.Type == corev1.PodInitialized
	}
	conditions = slices.DeleteFunc(conditions, unread)
	kept := make([]corev1.PodCondition, len(conditions))
	for i, c := range conditions {
		c.Type, c.Status, c.Reason = shared(c.Type), shared(c.Status), shared(c.Reason)
		kept[i] = c
	}
	return kept
}

func trimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	trimmed := make([]corev1.ContainerStatus, len(statuses))
	for i := range statuses {
		s := &statuses[i]
		trimmed[i] = corev1.ContainerStatus{
			Name: shared(s.Name), Image: shared(s.Image), ImageID: shared(s.ImageID), ContainerID: s.ContainerID,
			Ready: s.Ready, RestartCount: s.RestartCount, State: trimState(s.State), Resources: s.Resources,
		}
		if end := s.LastTerminationState.Terminated; end != nil && !s.Ready {
			trimmed[i].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{StartedAt: end.StartedAt, FinishedAt: end.FinishedAt}
		}
	}
	return trimmed
}

// trimState leaves out what a kubelet says in its own words, which differ from try to try.
func trimState(s corev1.ContainerState) corev1.ContainerState {
	if s.Waiting != nil {
		s.Waiting = &corev1.ContainerStateWaiting{Reason: shared(s.Waiting.Reason)}
	}
	if end := s.Terminated; end != nil {
		s.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: end.ExitCode, Reason: shared(end.Reason), StartedAt: end.StartedAt, FinishedAt: end.FinishedAt,
		}
	}
	return s
}
