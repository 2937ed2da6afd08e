package scenarios

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

const (
	// ConfigAnnotation is what the variable of ReadsConfig reads.
	ConfigAnnotation = "example.com/config"
	// proxyAnnotation is what the native sidecar reads.
	proxyAnnotation = "example.com/proxy-config"
)

// ReadConfig lets the first container of the template read ConfigAnnotation. Others are updated before it: a native
// sidecar, which reads another annotation and asks for cpu, and a container of a higher launch priority.
func ReadConfig(spec *corev1.PodSpec) {
	always := corev1.ContainerRestartPolicyAlways
	spec.InitContainers = []corev1.Container{{
		Name:          "proxy",
		Image:         "proxy:1",
		RestartPolicy: &always,
		Resources:     requests("1"),
		Env:           []corev1.EnvVar{readsAnnotation("PROXY_CONFIG", proxyAnnotation)},
	}}
	first := &spec.Containers[0]
	first.Env = append(first.Env, ReadsConfig(), launchPriority(1))
	spec.Containers = append(spec.Containers, corev1.Container{
		Name:  "side",
		Image: "side:1",
		Env:   []corev1.EnvVar{launchPriority(2)},
	})
}

// launchPriority returns the variable that says a container's launch priority.
func launchPriority(n int) corev1.EnvVar {
	return corev1.EnvVar{Name: contract.ContainerBarrierEnv, ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: contract.ContainerBarrierKeyPrefix + strconv.Itoa(n)},
	}}
}

func requests(cpu string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
}

// ReadsConfig returns a variable that reads ConfigAnnotation.
func ReadsConfig() corev1.EnvVar { return readsAnnotation("CONFIG", ConfigAnnotation) }

func readsAnnotation(name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + key + "']"},
	}}
}

// CheckEnvironments walks through worlds whose nodes have agents and whose workload reads the annotation as ReadConfig says. A
// user gives the template other annotations, by edit: what containers and the native sidecar read, and restarts of them
// as they are, and the native sidecar other images and resources. Other people annotate pods. In the end every container has read what its pod's metadata say, except in pods that
// other people annotated last, and was restarted once for each restart that its pod came to.
func CheckEnvironments(t *testing.T, walk simulate.Walk, edit func(w *simulate.World, change func(*corev1.PodTemplateSpec))) {
	t.Helper()
	start, unarrived := walk.Start, walk.Unarrived
	walk.Faults = annotationFaults
	walk.Start = func(t testing.TB, seed uint64) (*simulate.World, operator.Planner) {
		t.Helper()
		w, p := start(t, seed)
		w.NodeAgents()
		editConfig(w, seed, edit)
		return w, p
	}
	walk.Unarrived = func(w *simulate.World) []string { return append(unarrived(w), w.Outdated()...) }
	walk.Run(t)
}

func annotationFaults(seed uint64) simulate.Faults {
	f := simulate.AllFaults(seed)
	f.Foreign = 0.05
	f.Actors = []simulate.Actor{simulate.Annotates(ConfigAnnotation, "1", "2", "3", "9")}
	return f
}

// editConfig schedules edits by a user, who gives the template random annotations at random times, and its native
// sidecar one of two images, one of which has two names, and more or less cpu.
func editConfig(w *simulate.World, seed uint64, edit func(w *simulate.World, change func(*corev1.PodTemplateSpec))) {
	w.Options.Images = maps.Clone(w.Options.Images)
	w.Options.Images["proxy:2"], w.Options.Images["proxy:2b"] = cluster.Image{Digest: "2"}, cluster.Image{Digest: "2"}
	rng := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a simulation needs no secrecy
	for range 1 + rng.IntN(3) {
		value := map[string]string{ConfigAnnotation: []string{"1", "2", "3"}[rng.IntN(3)], proxyAnnotation: []string{"1", "2"}[rng.IntN(2)]}
		if restart := []string{"", "1", "2", "3 main", "4 side", "5 nobody", "6 proxy", "7 side proxy"}[rng.IntN(8)]; restart != "" {
			value[contract.RestartInPlaceAnnotation] = restart
		}
		cpu := []string{"1", "2"}[rng.IntN(2)]
		proxy := []string{"proxy:1", "proxy:2", "proxy:2b"}[rng.IntN(3)]
		w.EditAfter(time.Duration(1+rng.IntN(300))*time.Second, func() {
			w.Tell(cluster.UserActor, "wants annotations %v, image %s and cpu %s", value, proxy, cpu)
			edit(w, func(t *corev1.PodTemplateSpec) {
				t.Annotations = value
				t.Spec.InitContainers[0].Image = proxy
				t.Spec.InitContainers[0].Resources = requests(cpu)
			})
		})
	}
}
