package simulate

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
)

// ConfigAnnotation is what the variable of ReadsConfig reads.
const ConfigAnnotation = "example.com/config"

// ReadConfig lets the first container of the template read ConfigAnnotation. Others are updated before it: a native
// sidecar, and a container of a higher launch priority.
func ReadConfig(spec *corev1.PodSpec) {
	always := corev1.ContainerRestartPolicyAlways
	spec.InitContainers = []corev1.Container{{Name: "proxy", Image: "proxy:1", RestartPolicy: &always}}
	first := &spec.Containers[0]
	first.Env = append(first.Env, ReadsConfig(), launchPriority(1))
	spec.Containers = append(spec.Containers, corev1.Container{Name: "side", Image: "side:1", Env: []corev1.EnvVar{launchPriority(2)}})
}

// launchPriority returns the variable that says a container's launch priority.
func launchPriority(n int) corev1.EnvVar {
	return corev1.EnvVar{Name: contract.ContainerBarrierEnv, ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: contract.ContainerBarrierKeyPrefix + strconv.Itoa(n)},
	}}
}

// ReadsConfig returns a variable that reads ConfigAnnotation.
func ReadsConfig() corev1.EnvVar {
	return corev1.EnvVar{Name: "CONFIG", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + ConfigAnnotation + "']"},
	}}
}

// CheckEnvironments walks through worlds whose nodes have agents and whose workload reads the annotation as ReadConfig says. A
// user gives the template other annotations, by edit: values of ConfigAnnotation, and restarts of containers as they
// are, and other images of the native sidecar. Other people annotate pods. In the end every container has read what its pod's metadata say, except in pods that
// other people annotated last, and was restarted once for each restart that its pod came to.
func CheckEnvironments(t *testing.T, walk Walk, edit func(w *World, change func(*corev1.PodTemplateSpec))) {
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

// editConfig schedules edits by a user, who gives the template random annotations at random times, and its native
// sidecar one of two images, one of which has two names.
func (w *World) editConfig(seed uint64, edit func(w *World, change func(*corev1.PodTemplateSpec))) {
	w.options.Images = maps.Clone(w.options.Images)
	w.options.Images["proxy:2"], w.options.Images["proxy:2b"] = Image{Digest: "2"}, Image{Digest: "2"}
	rng := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a simulation needs no secrecy
	for range 1 + rng.IntN(3) {
		value := map[string]string{ConfigAnnotation: []string{"1", "2", "3"}[rng.IntN(3)]}
		if restart := []string{"", "1", "2", "3 main", "4 side", "5 nobody"}[rng.IntN(6)]; restart != "" {
			value[contract.RestartInPlaceAnnotation] = restart
		}
		proxy := []string{"proxy:1", "proxy:2", "proxy:2b"}[rng.IntN(3)]
		w.EditAfter(time.Duration(1+rng.IntN(300))*time.Second, func() {
			w.Tell(UserActor, "wants annotations %v and image %s", value, proxy)
			edit(w, func(t *corev1.PodTemplateSpec) {
				t.Annotations, t.Spec.InitContainers[0].Image = value, proxy
			})
		})
	}
}
