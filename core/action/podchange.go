package action

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodChange collects what one pass changes on one pod and turns it into as few writes as possible.
// What the pod has already is not recorded, so a change that changes nothing is empty.
type PodChange struct {
	// Pod is the pod as judged, read-only.
	Pod *corev1.Pod
	// Now is the moment of the pass, the transition time of conditions.
	Now metav1.Time

	labels      map[string]any
	annotations map[string]any
	finalizers  []string
	conditions  []corev1.PodCondition
	images      map[string]string
	resources   map[string]corev1.ResourceRequirements
}

// NewPodChange starts a change of the pod at the moment now.
func NewPodChange(pod *corev1.Pod, now metav1.Time) *PodChange {
	return &PodChange{
		Pod: pod, Now: now,
		labels: map[string]any{}, annotations: map[string]any{},
		images: map[string]string{}, resources: map[string]corev1.ResourceRequirements{},
	}
}

// SetLabel sets a label.
func (c *PodChange) SetLabel(key, value string) { set(c.labels, c.Pod.Labels, key, value) }

// RemoveLabel removes a label.
func (c *PodChange) RemoveLabel(key string) { remove(c.labels, c.Pod.Labels, key) }

// Label is the value that the label will have after the change.
func (c *PodChange) Label(key string) string { return after(c.labels, c.Pod.Labels, key) }

// SetAnnotation sets an annotation.
func (c *PodChange) SetAnnotation(key, value string) {
	set(c.annotations, c.Pod.Annotations, key, value)
}

// RemoveAnnotation removes an annotation.
func (c *PodChange) RemoveAnnotation(key string) { remove(c.annotations, c.Pod.Annotations, key) }

// Annotation is the value that the annotation will have after the change.
func (c *PodChange) Annotation(key string) string {
	return after(c.annotations, c.Pod.Annotations, key)
}

// AddFinalizer puts a finalizer on the pod.
func (c *PodChange) AddFinalizer(name string) {
	if !slices.Contains(c.Pod.Finalizers, name) && !slices.Contains(c.finalizers, name) {
		c.finalizers = append(c.finalizers, name)
	}
}

// SetImage changes the image of a container.
func (c *PodChange) SetImage(container, image string) {
	for i := range c.Pod.Spec.Containers {
		if c.Pod.Spec.Containers[i].Name == container && c.Pod.Spec.Containers[i].Image != image {
			c.images[container] = image
		}
	}
}

// SetResources changes the resources of a container. Only the quantities in r are written.
func (c *PodChange) SetResources(container string, r corev1.ResourceRequirements) {
	if len(r.Limits)+len(r.Requests) > 0 {
		c.resources[container] = r
	}
}

// SetCondition sets a readiness gate's condition. When that changes what condition Ready must say
// while all containers are ready, Ready False is written along, so that endpoints drop the pod
// without waiting for the kubelet; Ready True is left to the kubelet.
func (c *PodChange) SetCondition(t corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	if old := c.condition(t); old != nil && old.Status == status && old.Reason == reason && old.Message == message {
		return
	}
	c.putCondition(corev1.PodCondition{Type: t, Status: status, Reason: reason, Message: message})
	if status != corev1.ConditionTrue {
		c.dropReady()
	}
}

// Condition is the condition that the pod will have after the change, or nil.
func (c *PodChange) Condition(t corev1.PodConditionType) *corev1.PodCondition { return c.condition(t) }

func (c *PodChange) dropReady() {
	ready, containers := c.condition(corev1.PodReady), c.condition(corev1.ContainersReady)
	if ready == nil || ready.Status != corev1.ConditionTrue || containers == nil || containers.Status != corev1.ConditionTrue {
		return
	}
	var failing []string
	for _, g := range c.Pod.Spec.ReadinessGates {
		switch gate := c.condition(g.ConditionType); {
		case gate == nil:
			failing = append(failing, `corresponding condition of pod readiness gate "`+string(g.ConditionType)+`" does not exist.`)
		case gate.Status != corev1.ConditionTrue:
			failing = append(failing, `the status of pod readiness gate "`+string(g.ConditionType)+`" is not "True", but `+string(gate.Status))
		}
	}
	if len(failing) > 0 {
		c.putCondition(corev1.PodCondition{
			Type: corev1.PodReady, Status: corev1.ConditionFalse,
			Reason: "ReadinessGatesNotReady", Message: strings.Join(failing, ", "),
		})
	}
}

func (c *PodChange) condition(t corev1.PodConditionType) *corev1.PodCondition {
	for i := range c.conditions {
		if c.conditions[i].Type == t {
			return &c.conditions[i]
		}
	}
	for i := range c.Pod.Status.Conditions {
		if c.Pod.Status.Conditions[i].Type == t {
			return &c.Pod.Status.Conditions[i]
		}
	}
	return nil
}

func (c *PodChange) putCondition(n corev1.PodCondition) {
	n.LastTransitionTime = c.Now
	if old := c.condition(n.Type); old != nil && old.Status == n.Status {
		n.LastTransitionTime = old.LastTransitionTime
	}
	for i := range c.conditions {
		if c.conditions[i].Type == n.Type {
			c.conditions[i] = n
			return
		}
	}
	c.conditions = append(c.conditions, n)
}

// Empty says that the change changes nothing.
func (c *PodChange) Empty() bool {
	return len(c.labels)+len(c.annotations)+len(c.finalizers)+len(c.conditions)+len(c.images)+len(c.resources) == 0
}

// Patches are the writes of the change, in this order: conditions through pods/status, so that the
// pod is out of service before anything else happens; resources through pods/resize; all else
// through the pod. Labels and annotations ride on pods/status when nothing needs the last write.
func (c *PodChange) Patches() []Patch {
	var patches []Patch
	meta := c.metadata()
	needMain := len(c.images) > 0 || len(c.resources) > 0 && len(meta) > 0 || len(c.finalizers) > 0 || len(c.conditions) == 0 && len(meta) > 0
	if len(c.conditions) > 0 {
		body := map[string]any{"status": map[string]any{"conditions": c.conditionList()}}
		if !needMain && len(meta) > 0 {
			body["metadata"] = meta
		}
		patches = append(patches, Patch{Subresource: "status", Body: body})
	}
	if len(c.resources) > 0 {
		patches = append(patches, Patch{Subresource: "resize", Body: containers(c.resourceList())})
	}
	if needMain {
		body := map[string]any{}
		if len(c.images) > 0 {
			body = containers(c.imageList())
		}
		if len(meta) > 0 {
			body["metadata"] = meta
		}
		patches = append(patches, Patch{Body: body})
	}
	return patches
}

func (c *PodChange) metadata() map[string]any {
	meta := map[string]any{}
	if len(c.labels) > 0 {
		meta["labels"] = c.labels
	}
	if len(c.annotations) > 0 {
		meta["annotations"] = c.annotations
	}
	if len(c.finalizers) > 0 {
		list := make([]any, 0, len(c.finalizers))
		for _, f := range c.finalizers {
			list = append(list, f)
		}
		meta["finalizers"] = list
	}
	return meta
}

func (c *PodChange) conditionList() []any {
	list := make([]any, 0, len(c.conditions))
	for _, n := range c.conditions {
		list = append(list, map[string]any{
			"type": string(n.Type), "status": string(n.Status),
			"reason": textOrNil(n.Reason), "message": textOrNil(n.Message),
			"lastTransitionTime": n.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z"),
		})
	}
	return list
}

func (c *PodChange) imageList() []any {
	var list []any
	for i := range c.Pod.Spec.Containers {
		if image, ok := c.images[c.Pod.Spec.Containers[i].Name]; ok {
			list = append(list, map[string]any{"name": c.Pod.Spec.Containers[i].Name, "image": image})
		}
	}
	return list
}

func (c *PodChange) resourceList() []any {
	var list []any
	for i := range c.Pod.Spec.Containers {
		r, ok := c.resources[c.Pod.Spec.Containers[i].Name]
		if !ok {
			continue
		}
		resources := map[string]any{}
		if len(r.Limits) > 0 {
			resources["limits"] = quantities(r.Limits)
		}
		if len(r.Requests) > 0 {
			resources["requests"] = quantities(r.Requests)
		}
		list = append(list, map[string]any{"name": c.Pod.Spec.Containers[i].Name, "resources": resources})
	}
	return list
}

func quantities(l corev1.ResourceList) map[string]any {
	m := make(map[string]any, len(l))
	for name, q := range l {
		m[string(name)] = q.String()
	}
	return m
}

func containers(list []any) map[string]any {
	return map[string]any{"spec": map[string]any{"containers": list}}
}

// textOrNil makes an empty text a removal, so that the old text does not survive the merge.
func textOrNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func set(changes map[string]any, have map[string]string, key, value string) {
	if old, ok := have[key]; ok && old == value {
		delete(changes, key)
		return
	}
	changes[key] = value
}

func remove(changes map[string]any, have map[string]string, key string) {
	if _, ok := have[key]; ok {
		changes[key] = nil
		return
	}
	delete(changes, key)
}

func after(changes map[string]any, have map[string]string, key string) string {
	if change, ok := changes[key]; ok {
		text, _ := change.(string)
		return text
	}
	return have[key]
}
