package inplace

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// changes are the changes still to be written for containers, by container. They contain only values that differ from
// the pod.
type changes struct {
	images    map[string]string
	resources map[string]corev1.ResourceRequirements
	// metadata are the labels and annotations that the container's environment reads.
	metadata map[string]Metadata
	// restarts are containers that are restarted as they are.
	restarts sets.Set[string]
}

func newChanges() changes {
	return changes{
		images: map[string]string{}, resources: map[string]corev1.ResourceRequirements{}, metadata: map[string]Metadata{},
		restarts: sets.New[string](),
	}
}

func (ch changes) containers() sets.Set[string] {
	return ch.restarted().Union(sets.KeySet(ch.resources))
}

// restarted are the containers that restart for something else than a resize.
func (ch changes) restarted() sets.Set[string] {
	return sets.KeySet(ch.images).Union(sets.KeySet(ch.metadata)).Union(ch.restarts)
}

// split divides the changes by container: the chosen containers and the others.
func (ch changes) split(chosen sets.Set[string]) (now, later changes) {
	now, later = newChanges(), newChanges()
	pick := func(name string) changes {
		if chosen.Has(name) {
			return now
		}
		return later
	}
	for name, v := range ch.images {
		pick(name).images[name] = v
	}
	for name, v := range ch.resources {
		pick(name).resources[name] = v
	}
	for name, v := range ch.metadata {
		pick(name).metadata[name] = v
	}
	for name := range ch.restarts {
		pick(name).restarts.Insert(name)
	}
	return now, later
}

// missingOn leaves out values that the pod has already and containers that it does not have. A label or an annotation
// counts as present only when the container was started with it: a write to the pod alone restarts no container. A
// container that was never started needs no restart.
func (ch changes) missingOn(pod *corev1.Pod) changes {
	rest := newChanges()
	for name, image := range ch.images {
		if c := containerOf(pod, name); c != nil && c.Image != image {
			rest.images[name] = image
		}
	}
	for name, want := range ch.resources {
		if c := containerOf(pod, name); c != nil {
			if q := missingQuantities(c.Resources, want); !noQuantities(q) {
				rest.resources[name] = q
			}
		}
	}
	for name, m := range ch.metadata {
		c := containerOf(pod, name)
		if c == nil {
			continue
		}
		if hasRead(m, c, pod) {
			m = m.missingOn(pod)
		}
		if !m.empty() {
			rest.metadata[name] = m
		}
	}
	for name := range ch.restarts {
		if runningID(pod, name) != "" {
			rest.restarts.Insert(name)
		}
	}
	return rest
}

// interrupt reports whether writing the changes stops a container.
func (ch changes) interrupt(pod *corev1.Pod) bool {
	for name := range ch.containers() {
		if ch.stops(pod, name) {
			return true
		}
	}
	return false
}

// stops reports whether writing the changes stops the container.
func (ch changes) stops(pod *corev1.Pod, name string) bool {
	r, resized := ch.resources[name]
	return ch.restarted().Has(name) || resized && resizeRestarts(containerOf(pod, name), r)
}

func (ch changes) write(c *action.PodChange) {
	for name, image := range ch.images {
		c.SetImage(name, image)
	}
	for name, r := range ch.resources {
		c.SetResources(name, r)
	}
	for _, m := range ch.metadata {
		m.write(c)
	}
}

func (m Metadata) empty() bool { return len(m.Labels)+len(m.Annotations) == 0 }

// missingOn leaves out the keys that have their value on the pod.
func (m Metadata) missingOn(pod *corev1.Pod) Metadata {
	return Metadata{Labels: differing(pod.Labels, m.Labels), Annotations: differing(pod.Annotations, m.Annotations)}
}

func (m Metadata) write(c *action.PodChange) {
	for key, value := range m.Labels {
		if value == nil {
			c.RemoveLabel(key)
		} else {
			c.SetLabel(key, *value)
		}
	}
	for key, value := range m.Annotations {
		if value == nil {
			c.RemoveAnnotation(key)
		} else {
			c.SetAnnotation(key, *value)
		}
	}
}

func (m Metadata) sharesKey(o Metadata) bool {
	return sets.KeySet(m.Labels).HasAny(slices.Collect(maps.Keys(o.Labels))...) ||
		sets.KeySet(m.Annotations).HasAny(slices.Collect(maps.Keys(o.Annotations))...)
}

func (m *Metadata) set(field, key string, value *string) {
	list := &m.Labels
	if field == fieldAnnotations {
		list = &m.Annotations
	}
	if *list == nil {
		*list = map[string]*string{}
	}
	(*list)[key] = value
}

// plainChange is the metadata that no container's environment reads, written with the first batch.
type plainChange struct {
	Metadata

	Finalizers       []string `json:"finalizers,omitempty"`
	DeleteFinalizers []string `json:"$deleteFromPrimitiveList/finalizers,omitempty"`
}

func (p plainChange) write(c *action.PodChange) {
	p.Metadata.write(c)
	for _, name := range p.Finalizers {
		c.AddFinalizer(name)
	}
	for _, name := range p.DeleteFinalizers {
		c.RemoveFinalizer(name)
	}
}

// patch is the change as a strategic merge patch of a pod; nil when it is empty.
func (p plainChange) patch() []byte {
	if p.empty() && len(p.Finalizers)+len(p.DeleteFinalizers) == 0 {
		return nil
	}
	return []byte(encode(map[string]any{"metadata": p}))
}

func parsePlainChange(patch []byte) (plainChange, error) {
	var body struct {
		Metadata plainChange `json:"metadata"`
	}
	if len(patch) == 0 {
		return plainChange{}, nil
	}
	err := json.Unmarshal(patch, &body)
	return body.Metadata, err
}

// differing leaves out the keys that have their value already.
func differing(have map[string]string, want map[string]*string) map[string]*string {
	var rest map[string]*string
	for key, value := range want {
		old, ok := have[key]
		if value == nil && !ok || value != nil && ok && *value == old {
			continue
		}
		if rest == nil {
			rest = map[string]*string{}
		}
		rest[key] = value
	}
	return rest
}

// containerOf is the container or the native sidecar of that name; nil for an init container that ends.
func containerOf(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i]
		}
	}
	return sidecarOf(pod, name)
}

func sidecarOf(pod *corev1.Pod, name string) *corev1.Container {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name && podspec.IsSidecar(c) {
			return c
		}
	}
	return nil
}

func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, statuses := range [...][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == name {
				return &statuses[i]
			}
		}
	}
	return nil
}
