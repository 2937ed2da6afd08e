package inplace

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// scope has the fields that an update is responsible for: they changed between two templates, or were still pending on
// a pod. Within the scope the pod gets the values of the template; outside of it the pod keeps its values, such as an
// image that a webhook has rewritten or a request that an autoscaler has set.
type scope struct {
	images, resources, restarts sets.Set[string] // names of containers
	labels, annotations         sets.Set[string] // keys

	addFinalizers, removeFinalizers []string
}

func newScope() scope {
	return scope{
		images: sets.New[string](), resources: sets.New[string](), restarts: sets.New[string](),
		labels: sets.New[string](), annotations: sets.New[string](),
	}
}

// union is a scope of its own that covers both. Finalizers are never pending.
func (s scope) union(o scope) scope {
	return scope{
		images: s.images.Union(o.images), resources: s.resources.Union(o.resources), restarts: s.restarts.Union(o.restarts),
		labels: s.labels.Union(o.labels), annotations: s.annotations.Union(o.annotations),
		addFinalizers: s.addFinalizers, removeFinalizers: s.removeFinalizers,
	}
}

// withAll is a scope of its own that covers all of the template, for a pod with unknown values.
func (s scope) withAll(t *corev1.PodTemplateSpec) scope {
	s = s.union(newScope())
	for _, c := range podspec.LongRunning(&t.Spec) {
		s.images.Insert(c.Name)
		s.resources.Insert(c.Name)
	}
	maps.Copy(s.labels, sets.KeySet(t.Labels))
	maps.Copy(s.annotations, sets.KeySet(t.Annotations))
	return s
}

func (s *scope) addMetadata(from, to *corev1.PodTemplateSpec) {
	insertChangedKeys(s.labels, from.Labels, to.Labels)
	insertChangedKeys(s.annotations, from.Annotations, to.Annotations)
	before, after := sets.New(from.Finalizers...), sets.New(to.Finalizers...)
	s.addFinalizers = sets.List(after.Difference(before))
	s.removeFinalizers = sets.List(before.Difference(after))
}

// readByEnv reports whether a container of the template reads a key of the scope.
func (s scope) readByEnv(t *corev1.PodTemplateSpec) bool {
	for _, c := range podspec.LongRunning(&t.Spec) {
		for i := range c.Env {
			field, key, ok := metadataReference(&c.Env[i])
			if ok && !hidden(c, i) && (field == fieldLabels && s.labels.Has(key) || field == fieldAnnotations && s.annotations.Has(key)) {
				return true
			}
		}
	}
	return false
}

func insertChangedKeys(s sets.Set[string], from, to map[string]string) {
	for key, value := range to {
		if old, ok := from[key]; !ok || old != value {
			s.Insert(key)
		}
	}
	for key := range from {
		if _, ok := to[key]; !ok {
			s.Insert(key)
		}
	}
}
