package inplace

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace/diff"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
)

// restarts are the containers that the update restarts as they are, unless they were restarted already.
func (u *Update) restarts() sets.Set[string] {
	if !u.options.EnvFromMetadata {
		return nil
	}
	return diff.RestartNames(u.template)
}

// hasAskedFor reports whether the pod has the template's value of the annotation: the named containers were restarted,
// or their restart is owed.
func hasAskedFor(pod *corev1.Pod, t *corev1.PodTemplateSpec) bool {
	return pod.Annotations[contract.RestartInPlaceAnnotation] == t.Annotations[contract.RestartInPlaceAnnotation]
}

// carryRestarts continues with the earlier restarts that are still wanted, and returns their containers.
func carryRestarts(s *record.State, before record.Prior, wanted sets.Set[string]) sets.Set[string] {
	carried := wanted.Intersection(sets.KeySet(before.Restarts))
	for name := range carried {
		s.SetRestart(name, before.Restarts[name])
	}
	return carried
}
