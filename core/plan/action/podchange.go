package action

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodChange collects the changes of one pass to one pod and turns them into as few writes as possible. Values that the
// pod has already are not recorded, so steps that cancel each other out write nothing.
type PodChange struct {
	// Pod is the pod as the snapshot has it, read-only.
	Pod *corev1.Pod
	// Now is the moment of the pass, the transition time of conditions.
	Now metav1.Time

	labels            map[string]any
	annotations       map[string]any
	newFinalizers     []string
	removedFinalizers []string
	conditions        []corev1.PodCondition
	images            map[string]string
	resources         map[string]corev1.ResourceRequirements
	resizeManager     string
}

// NewPodChange starts a change of the pod at the moment now.
func NewPodChange(pod *corev1.Pod, now metav1.Time) *PodChange {
	return &PodChange{Pod: pod, Now: now}
}

// SetLabel sets a label.
func (c *PodChange) SetLabel(key, value string) { set(&c.labels, c.Pod.Labels, key, value) }

// RemoveLabel removes a label.
func (c *PodChange) RemoveLabel(key string) { remove(&c.labels, c.Pod.Labels, key) }

// Label is the value that the label will have after the change, empty when there will be none.
func (c *PodChange) Label(key string) string {
	value, _ := c.LookupLabel(key)
	return value
}

// LookupLabel is the value that the label will have after the change, and whether there will be one.
func (c *PodChange) LookupLabel(key string) (string, bool) { return after(c.labels, c.Pod.Labels, key) }

// SetAnnotation sets an annotation.
func (c *PodChange) SetAnnotation(key, value string) {
	set(&c.annotations, c.Pod.Annotations, key, value)
}

// RemoveAnnotation removes an annotation.
func (c *PodChange) RemoveAnnotation(key string) { remove(&c.annotations, c.Pod.Annotations, key) }

// Annotation is the value that the annotation will have after the change, empty when there will be none.
func (c *PodChange) Annotation(key string) string {
	value, _ := c.LookupAnnotation(key)
	return value
}

// LookupAnnotation is the value that the annotation will have after the change, and whether there will be one.
func (c *PodChange) LookupAnnotation(key string) (string, bool) {
	return after(c.annotations, c.Pod.Annotations, key)
}

// AddFinalizer puts a finalizer on the pod, once.
func (c *PodChange) AddFinalizer(name string) {
	c.removedFinalizers = without(c.removedFinalizers, name)
	if !c.HasFinalizer(name) {
		c.newFinalizers = append(c.newFinalizers, name)
	}
}

// RemoveFinalizer takes a finalizer off the pod.
func (c *PodChange) RemoveFinalizer(name string) {
	c.newFinalizers = without(c.newFinalizers, name)
	if c.HasFinalizer(name) {
		c.removedFinalizers = append(c.removedFinalizers, name)
	}
}

// HasFinalizer reports whether the pod will have the finalizer after the change.
func (c *PodChange) HasFinalizer(name string) bool {
	if slices.Contains(c.newFinalizers, name) {
		return true
	}
	return slices.Contains(c.Pod.Finalizers, name) && !slices.Contains(c.removedFinalizers, name)
}

// SetImage changes the image of a container or an init container. One that the pod does not have is ignored.
func (c *PodChange) SetImage(container, image string) {
	have := c.anyContainer(container)
	switch {
	case have == nil:
	case have.Image == image:
		delete(c.images, container)
	default:
		if c.images == nil {
			c.images = map[string]string{}
		}
		c.images[container] = image
	}
}

// Image is the image that the container will have after the change, empty when the pod has no such container.
func (c *PodChange) Image(container string) string {
	if image, ok := c.images[container]; ok {
		return image
	}
	if have := c.anyContainer(container); have != nil {
		return have.Image
	}
	return ""
}

// SetResources changes the resources of a container or an init container. Only those quantities in r are written that
// differ from the quantities of the container; its others stay as they are. A second call for the same container
// replaces the first. A container that the pod does not have is ignored.
func (c *PodChange) SetResources(container string, r corev1.ResourceRequirements) {
	have := c.anyContainer(container)
	if have == nil {
		return
	}
	delete(c.resources, container)
	differing := corev1.ResourceRequirements{
		Limits:   differingQuantities(have.Resources.Limits, r.Limits),
		Requests: differingQuantities(have.Resources.Requests, r.Requests),
	}
	if len(differing.Limits)+len(differing.Requests) == 0 {
		return
	}
	if c.resources == nil {
		c.resources = map[string]corev1.ResourceRequirements{}
	}
	c.resources[container] = differing
}

// ResizeAs names the field manager of the write that changes resources.
func (c *PodChange) ResizeAs(manager string) { c.resizeManager = manager }

// SetCondition sets a readiness gate's condition. Ready is left to the kubelet, which answers within a second: in a
// Ready that another client has written in the kubelet's words the kubelet sees no difference, and it sends its own
// last one once more.
func (c *PodChange) SetCondition(t corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	wanted := corev1.PodCondition{
		Type:               t,
		Status:             status,
		Reason:             reason,
		Message:            message,
		LastTransitionTime: c.Now,
	}
	c.conditions = slices.DeleteFunc(c.conditions, func(n corev1.PodCondition) bool { return n.Type == t })
	if old := conditionIn(c.Pod.Status.Conditions, t); old != nil {
		if old.Status == status && old.Reason == reason && old.Message == message {
			return
		}
		if old.Status == status {
			wanted.LastTransitionTime = old.LastTransitionTime
		}
	}
	c.conditions = append(c.conditions, wanted)
}

// Condition is the condition that the pod will have after the change, or nil.
func (c *PodChange) Condition(t corev1.PodConditionType) *corev1.PodCondition {
	if changed := conditionIn(c.conditions, t); changed != nil {
		return changed
	}
	return conditionIn(c.Pod.Status.Conditions, t)
}

// Empty reports whether the change changes nothing.
func (c *PodChange) Empty() bool {
	return len(c.labels)+len(c.annotations)+len(c.newFinalizers)+len(c.removedFinalizers)+
		len(c.conditions)+len(c.images)+len(c.resources) == 0
}

func (c *PodChange) anyContainer(name string) *corev1.Container {
	if container := named(c.Pod.Spec.Containers, name); container != nil {
		return container
	}
	return named(c.Pod.Spec.InitContainers, name)
}

func named(containers []corev1.Container, name string) *corev1.Container {
	for i := range containers {
		if containers[i].Name == name {
			return &containers[i]
		}
	}
	return nil
}

func conditionIn(list []corev1.PodCondition, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range list {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}

func differingQuantities(have, want corev1.ResourceList) corev1.ResourceList {
	var differing corev1.ResourceList
	for name, q := range want {
		if old, ok := have[name]; ok && equality.Semantic.DeepEqual(old, q) {
			continue
		}
		if differing == nil {
			differing = corev1.ResourceList{}
		}
		differing[name] = q
	}
	return differing
}

func without(list []string, name string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == name })
}

func set(changes *map[string]any, have map[string]string, key, value string) {
	if old, ok := have[key]; ok && old == value {
		delete(*changes, key)
		return
	}
	record(changes, key, value)
}

func remove(changes *map[string]any, have map[string]string, key string) {
	if _, ok := have[key]; ok {
		record(changes, key, nil)
		return
	}
	delete(*changes, key)
}

func record(changes *map[string]any, key string, value any) {
	if *changes == nil {
		*changes = map[string]any{}
	}
	(*changes)[key] = value
}

func after(changes map[string]any, have map[string]string, key string) (string, bool) {
	if change, ok := changes[key]; ok {
		text, isText := change.(string)
		return text, isText
	}
	value, ok := have[key]
	return value, ok
}
