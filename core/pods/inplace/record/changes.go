package record

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/quantity"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
)

// Changes are the changes still to be written for containers, by container. They contain only values that differ from
// the pod.
type Changes struct {
	Images    map[string]string
	Resources map[string]corev1.ResourceRequirements
	// Metadata are the labels and annotations that the container's environment reads.
	Metadata map[string]Metadata
	// Restarts are containers that are restarted as they are.
	Restarts sets.Set[string]
}

// NewChanges is no change.
func NewChanges() Changes {
	return Changes{
		Images:    map[string]string{},
		Resources: map[string]corev1.ResourceRequirements{},
		Metadata:  map[string]Metadata{},
		Restarts:  sets.New[string](),
	}
}

// Containers are the names of all containers with a change.
func (ch Changes) Containers() sets.Set[string] {
	return ch.Restarted().Union(sets.KeySet(ch.Resources))
}

// Restarted are the containers that restart for something else than a resize.
func (ch Changes) Restarted() sets.Set[string] {
	return sets.KeySet(ch.Images).Union(sets.KeySet(ch.Metadata)).Union(ch.Restarts)
}

// Split divides the changes by container: the chosen containers and the others.
func (ch Changes) Split(chosen sets.Set[string]) (now, later Changes) {
	now, later = NewChanges(), NewChanges()
	pick := func(name string) Changes {
		if chosen.Has(name) {
			return now
		}
		return later
	}
	for name, v := range ch.Images {
		pick(name).Images[name] = v
	}
	for name, v := range ch.Resources {
		pick(name).Resources[name] = v
	}
	for name, v := range ch.Metadata {
		pick(name).Metadata[name] = v
	}
	for name := range ch.Restarts {
		pick(name).Restarts.Insert(name)
	}
	return now, later
}

// MissingOn leaves out values that the pod has already and containers that it does not have. A label or an annotation
// counts as present only when the container was started with it: a write to the pod alone restarts no container. A
// container that was never started needs no restart.
func (ch Changes) MissingOn(pod *corev1.Pod) Changes {
	rest := NewChanges()
	for name, image := range ch.Images {
		if c := running.Container(pod, name); c != nil && c.Image != image {
			rest.Images[name] = image
		}
	}
	for name, want := range ch.Resources {
		if c := running.Container(pod, name); c != nil {
			if q := quantity.Missing(c.Resources, want); !quantity.None(q) {
				rest.Resources[name] = q
			}
		}
	}
	for name, m := range ch.Metadata {
		c := running.Container(pod, name)
		if c == nil {
			continue
		}
		if HasRead(m, c, pod) {
			m = m.MissingOn(pod)
		}
		if !m.Empty() {
			rest.Metadata[name] = m
		}
	}
	for name := range ch.Restarts {
		if running.ID(pod, name) != "" {
			rest.Restarts.Insert(name)
		}
	}
	return rest
}

// Interrupt reports whether writing the changes stops a container.
func (ch Changes) Interrupt(pod *corev1.Pod) bool {
	for name := range ch.Containers() {
		if ch.Stops(pod, name) {
			return true
		}
	}
	return false
}

// Stops reports whether writing the changes stops the container.
func (ch Changes) Stops(pod *corev1.Pod, name string) bool {
	r, resized := ch.Resources[name]
	return ch.Restarted().Has(name) || resized && quantity.Restarts(running.Container(pod, name), r)
}

// Write puts the changes of images, resources and metadata into c. Restarts are in the state alone.
func (ch Changes) Write(c *action.PodChange) {
	for name, image := range ch.Images {
		c.SetImage(name, image)
	}
	for name, r := range ch.Resources {
		c.SetResources(name, r)
	}
	for _, m := range ch.Metadata {
		m.write(c)
	}
}

// Add takes in the changes of o, which are none of those that ch has.
func (ch Changes) Add(o Changes) {
	maps.Copy(ch.Images, o.Images)
	maps.Copy(ch.Resources, o.Resources)
	maps.Copy(ch.Metadata, o.Metadata)
	maps.Copy(ch.Restarts, o.Restarts)
}

// ByAgent names the containers that the node agent restarts. The kubelet replaces the containers that get another
// image, too.
func (ch Changes) ByAgent() sets.Set[string] {
	return ch.Restarts.Difference(sets.KeySet(ch.Images)).Union(sets.KeySet(ch.Metadata))
}
