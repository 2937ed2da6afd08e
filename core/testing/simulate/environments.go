package simulate

import (
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ConfigAnnotation is what the variable of ReadsConfig reads.
const ConfigAnnotation = "example.com/config"

// ReadsConfig returns a variable that reads ConfigAnnotation.
func ReadsConfig() corev1.EnvVar {
	return corev1.EnvVar{Name: "CONFIG", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + ConfigAnnotation + "']"},
	}}
}

// CheckEnvironments walks through worlds whose nodes have agents and whose workload has a container with ReadsConfig. A
// user gives the template other values of ConfigAnnotation, by edit, and other people annotate pods. In the end every
// container has read what its pod's metadata say, except in pods that other people annotated last.
func CheckEnvironments(t *testing.T, walk Walk, edit func(w *World, value string)) {
	t.Helper()
	start, unarrived := walk.Start, walk.Unarrived
	walk.Faults = annotationFaults
	walk.Start = func(t testing.TB, seed uint64) (*World, Planner) {
		t.Helper()
		w, p := start(t, seed)
		w.NodeAgents()
		w.editConfig(seed, edit)
		return w, p
	}
	walk.Unarrived = func(w *World) []string { return append(unarrived(w), w.agents.allOutdated()...) }
	walk.Run(t)
}

func annotationFaults(seed uint64) Faults {
	f := AllFaults(seed)
	f.Foreign, f.Actors = 0.05, []Actor{Annotates(ConfigAnnotation, "1", "2", "3", "9")}
	return f
}

// editConfig schedules edits by a user, who sets ConfigAnnotation of the template to random values at random times.
func (w *World) editConfig(seed uint64, edit func(w *World, value string)) {
	rng := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a simulation needs no secrecy
	for range 1 + rng.IntN(3) {
		value := []string{"1", "2", "3"}[rng.IntN(3)]
		w.EditAfter(time.Duration(1+rng.IntN(300))*time.Second, func() {
			w.Tell(UserActor, "wants annotation %s", value)
			edit(w, value)
		})
	}
}
