package diff

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// Scope has the fields that an update is responsible for: they changed between two templates, or were still pending on
// a pod. Within the scope the pod gets the values of the template; outside of it the pod keeps its values, such as an
// image that a webhook has rewritten or a request that an autoscaler has set.
type Scope struct {
	Images, Resources, Restarts sets.Set[string] // names of containers
	Labels, Annotations         sets.Set[string] // keys

	AddFinalizers, RemoveFinalizers []string
}

// NewScope is a scope of nothing.
func NewScope() Scope {
	return Scope{
		Images:      sets.New[string](),
		Resources:   sets.New[string](),
		Restarts:    sets.New[string](),
		Labels:      sets.New[string](),
		Annotations: sets.New[string](),
	}
}

// Union is a scope of its own that covers both. Finalizers are never pending.
func (s Scope) Union(o Scope) Scope {
	return Scope{
		Images:           s.Images.Union(o.Images),
		Resources:        s.Resources.Union(o.Resources),
		Restarts:         s.Restarts.Union(o.Restarts),
		Labels:           s.Labels.Union(o.Labels),
		Annotations:      s.Annotations.Union(o.Annotations),
		AddFinalizers:    s.AddFinalizers,
		RemoveFinalizers: s.RemoveFinalizers,
	}
}

// WithAll is a scope of its own that covers all of the template, for a pod with unknown values.
func (s Scope) WithAll(t *corev1.PodTemplateSpec) Scope {
	s = s.Union(NewScope())
	for _, c := range podspec.LongRunning(&t.Spec) {
		s.Images.Insert(c.Name)
		s.Resources.Insert(c.Name)
	}
	maps.Copy(s.Labels, sets.KeySet(t.Labels))
	maps.Copy(s.Annotations, sets.KeySet(t.Annotations))
	return s
}

func (s *Scope) addMetadata(from, to *corev1.PodTemplateSpec) {
	insertChangedKeys(s.Labels, from.Labels, to.Labels)
	insertChangedKeys(s.Annotations, from.Annotations, to.Annotations)
	before := sets.New(from.Finalizers...)
	after := sets.New(to.Finalizers...)
	s.AddFinalizers = sets.List(after.Difference(before))
	s.RemoveFinalizers = sets.List(before.Difference(after))
}

// ReadByEnv reports whether a container of the template reads a key of the scope.
func (s Scope) ReadByEnv(t *corev1.PodTemplateSpec) bool {
	for _, c := range podspec.LongRunning(&t.Spec) {
		for i := range c.Env {
			field, key, ok := agentreport.Reference(&c.Env[i])
			if ok && !agentreport.Hidden(c, i) && (field == agentreport.FieldLabels && s.Labels.Has(key) || field == agentreport.FieldAnnotations && s.Annotations.Has(key)) {
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
