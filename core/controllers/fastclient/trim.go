package fastclient

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// longestMessage is how many bytes are kept of the kubelet's message about a failed pod.
const longestMessage = 256

// reservedEnvPrefix is the prefix of the environment variables with a plain value that plans read.
const reservedEnvPrefix = "KRUISE_"

// Pods returns the settings of a cache of the pods that the selector matches, trimmed by TrimPod.
func Pods(selector labels.Selector) cache.ByObject {
	return cache.ByObject{Label: selector, Transform: TrimPod}
}

// WithLabel selects objects that have the label, whatever its value. It panics on an invalid key: pass a constant.
func WithLabel(key string) labels.Selector {
	has, err := labels.NewRequirement(key, selection.Exists, nil)
	if err != nil {
		panic(err)
	}
	return labels.NewSelector().Add(*has)
}

// PodsWithLabel returns Pods for all pods that have the label, whatever its value.
func PodsWithLabel(key string) cache.ByObject { return Pods(WithLabel(key)) }

// PodsOf is PodsWithLabel for a label that other kinds write too. If a pod's controller is not of the kind, in any
// version, it keeps only the name and that controller of the pod: such pods cost next to nothing, and are cached whole as
// soon as they have no controller any more.
func PodsOf(label string, kind schema.GroupKind) cache.ByObject {
	pods := PodsWithLabel(label)
	pods.Transform = func(object any) (any, error) {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return TrimPod(object)
		}
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || owner.Kind == kind.Kind && groupOf(owner.APIVersion) == kind.Group {
			return TrimPod(object)
		}
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace:         pod.Namespace,
			Name:              pod.Name,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			DeletionTimestamp: pod.DeletionTimestamp,
			OwnerReferences:   []metav1.OwnerReference{*owner},
		}}, nil
	}
	return pods
}

// Revisions returns the settings of a cache of ControllerRevisions. It drops the data of a revision with a controller of
// another API group: revisions of other workloads cost next to nothing.
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

// Nodes returns the settings of a cache of nodes, trimmed by trimNode. It holds all of them, even if an operator is
// restricted to one namespace.
func Nodes() cache.ByObject {
	return cache.ByObject{Transform: trimNode, Field: fields.Everything()}
}

// Within restricts the cache settings of a namespaced kind to one namespace; an empty one changes nothing.
func Within(namespace string, o cache.ByObject) cache.ByObject {
	if namespace != "" {
		o.Field = fields.OneTermEqualSelector("metadata.namespace", namespace)
	}
	return o
}

// Trim removes fields that no plan reads from any kind: managedFields and the last-applied-configuration annotation of
// kubectl. Of an ImagePullJob without a Go type it keeps the metadata, the image, and the numbers and times of the
// status. It is meant for cache.Options.DefaultTransform.
func Trim(object any) (any, error) {
	trimMeta(object)
	if job, ok := object.(*unstructured.Unstructured); ok && job.GetKind() == contract.ImagePullJobKind {
		trimPullJob(job)
	}
	return object, nil
}

func trimPullJob(job *unstructured.Unstructured) {
	spec, hasSpec := job.Object["spec"].(map[string]any)
	if hasSpec {
		job.Object["spec"] = map[string]any{"image": spec["image"]}
	}
	status, _ := job.Object["status"].(map[string]any)
	maps.DeleteFunc(status, func(_ string, value any) bool {
		_, isList := value.([]any)
		return isList
	})
}

// TrimPod keeps the fields of a pod that plans read. Of the metadata: all but kubectl's last-applied-configuration and
// managedFields, of which it keeps resizes for another revision than the pod's. Of the spec: the node, or the names of
// nodes that it must be scheduled to, readiness gates, the grace period of its termination unless it is the default one,
// volumes of claims, and of each container name, image, resources, restart and resize policy, and environment variables
// with a valueFrom or a name that begins with KRUISE_. Of the
// status: phase, conditions except the ones of the start-up steps, of each container its running process and resources,
// for one that is not ready whether it has started and when its last run began and ended, and why a pod has failed, with
// the first 256 bytes of the message. Strings that many pods have in common are shared.
func TrimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		trimMeta(object)
		return object, nil
	}
	s, st := &pod.Spec, &pod.Status
	if s.RestartPolicy == "" { // the server always sets it: the pod is trimmed already
		return pod, nil
	}
	resizes := podstate.ResizesForOthers(pod)
	trimMeta(pod)
	pod.ManagedFields = resizes
	shareMeta(&pod.ObjectMeta)
	pod.Spec = corev1.PodSpec{
		NodeName:                      shared(s.NodeName),
		Affinity:                      trimAffinity(s),
		ReadinessGates:                shareGates(s.ReadinessGates),
		Volumes:                       claimVolumes(s.Volumes),
		Containers:                    trimContainers(s.Containers),
		InitContainers:                trimContainers(s.InitContainers),
		TerminationGracePeriodSeconds: trimGrace(s.TerminationGracePeriodSeconds),
	}
	reason, message := whyFailed(st)
	pod.Status = corev1.PodStatus{
		ObservedGeneration:    st.ObservedGeneration,
		Phase:                 shared(st.Phase),
		Conditions:            trimConditions(st.Conditions),
		ContainerStatuses:     trimStatuses(st.ContainerStatuses),
		InitContainerStatuses: trimStatuses(st.InitContainerStatuses),
	}
	pod.Status.Reason, pod.Status.Message = reason, message
	return pod, nil
}

// trimNode keeps of a node its metadata, taints, provider ID and unschedulable flag, conditions and allocatable
// resources.
func trimNode(object any) (any, error) {
	trimMeta(object)
	if node, ok := object.(*corev1.Node); ok {
		node.Spec = corev1.NodeSpec{
			Unschedulable: node.Spec.Unschedulable,
			Taints:        node.Spec.Taints,
			ProviderID:    node.Spec.ProviderID,
		}
		node.Status = corev1.NodeStatus{Conditions: node.Status.Conditions, Allocatable: node.Status.Allocatable}
	}
	return object, nil
}

func trimMeta(object any) {
	m, err := meta.Accessor(object)
	if err != nil {
		return // DeletedFinalStateUnknown: a deletion that the watch missed; it holds a trimmed object
	}
	m.SetManagedFields(nil)
	if annotations := m.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
	}
}

// whyFailed returns the kubelet's reason and message for a failed pod.
func whyFailed(s *corev1.PodStatus) (reason, message string) {
	if s.Phase != corev1.PodFailed {
		return "", ""
	}
	return shared(s.Reason), shared(begin(s.Message))
}

// begin returns at most the first 256 bytes of a message.
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
			Name:               shared(c.Name),
			Image:              shared(c.Image),
			Resources:          c.Resources,
			ResizePolicy:       c.ResizePolicy,
			RestartPolicy:      c.RestartPolicy,
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

// trimGrace drops the default, which most pods have.
func trimGrace(seconds *int64) *int64 {
	if seconds != nil && *seconds == corev1.DefaultTerminationGracePeriodSeconds {
		return nil
	}
	return seconds
}

// trimAffinity keeps which nodes a pod without a node is required to be scheduled to, as far as they are named.
func trimAffinity(s *corev1.PodSpec) *corev1.Affinity {
	if s.NodeName != "" || s.Affinity == nil || s.Affinity.NodeAffinity == nil {
		return nil
	}
	required := s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return nil
	}
	var terms []corev1.NodeSelectorTerm
	for _, term := range required.NodeSelectorTerms {
		if len(term.MatchFields) > 0 {
			terms = append(terms, corev1.NodeSelectorTerm{MatchFields: term.MatchFields})
		}
	}
	if terms == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
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
		c.Type = shared(c.Type)
		c.Status = shared(c.Status)
		c.Reason = shared(c.Reason)
		kept[i] = c
	}
	return kept
}

func trimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	trimmed := make([]corev1.ContainerStatus, len(statuses))
	for i := range statuses {
		s := &statuses[i]
		trimmed[i] = corev1.ContainerStatus{
			Name:         shared(s.Name),
			Image:        shared(s.Image),
			ImageID:      shared(s.ImageID),
			ContainerID:  s.ContainerID,
			Ready:        s.Ready,
			RestartCount: s.RestartCount,
			State:        trimState(s.State),
			Resources:    s.Resources,
		}
		if !s.Ready {
			trimmed[i].Started = s.Started
		}
		// One that is killed for its memory again and again is ready between two ends.
		if end := s.LastTerminationState.Terminated; end != nil && (!s.Ready || end.Reason == running.OutOfMemory) {
			trimmed[i].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
				Reason:     shared(end.Reason),
				StartedAt:  end.StartedAt,
				FinishedAt: end.FinishedAt,
			}
		}
	}
	return trimmed
}

// trimState drops the kubelet's messages, which differ from try to try.
func trimState(s corev1.ContainerState) corev1.ContainerState {
	if s.Waiting != nil {
		s.Waiting = &corev1.ContainerStateWaiting{Reason: shared(s.Waiting.Reason)}
	}
	if end := s.Terminated; end != nil {
		s.Terminated = &corev1.ContainerStateTerminated{
			ExitCode:   end.ExitCode,
			Reason:     shared(end.Reason),
			StartedAt:  end.StartedAt,
			FinishedAt: end.FinishedAt,
		}
	}
	return s
}
