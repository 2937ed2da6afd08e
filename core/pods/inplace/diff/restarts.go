package diff

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// ParseRestart reads the value of contract.RestartInPlaceAnnotation: the names of containers and native sidecars, all of
// them where there are none. It is false for a value that asks for nothing.
func ParseRestart(value string) (containers []string, ok bool) {
	words := strings.Fields(value)
	if len(words) == 0 {
		return nil, false
	}
	return words[1:], true
}

// RestartNames are the containers and native sidecars that the template's annotation names.
func RestartNames(t *corev1.PodTemplateSpec) sets.Set[string] {
	names, ok := ParseRestart(t.Annotations[contract.RestartInPlaceAnnotation])
	all := sets.New[string]()
	for _, c := range podspec.LongRunning(&t.Spec) {
		all.Insert(c.Name)
	}
	switch {
	case !ok:
		return nil
	case len(names) == 0:
		return all
	}
	return all.Intersection(sets.New(names...))
}

func (s *Scope) addRestarts(from, to *corev1.PodTemplateSpec, o Options) {
	if o.EnvFromMetadata && from.Annotations[contract.RestartInPlaceAnnotation] != to.Annotations[contract.RestartInPlaceAnnotation] {
		s.Restarts = s.Restarts.Union(RestartNames(to))
	}
}
