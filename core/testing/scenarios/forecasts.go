package scenarios

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/foretold"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

// Forecast is a workload of which a user edits the template once it has settled.
type Forecast struct {
	World   *simulate.World
	Planner operator.Planner
	// Edit changes the template and returns the warnings that the user gets.
	Edit func(change func(*corev1.PodTemplateSpec)) []string
}

// passesOfForecast is more passes than one rollout takes.
const passesOfForecast = 3000

// CheckForecasts edits templates at random, in so many worlds with calm nodes that have agents, and compares the first
// warning with the pods: how many were recreated or updated in place, and which containers of each were restarted. The
// template of the workload that start returns must be as ReadConfig leaves it.
func CheckForecasts(t *testing.T, worlds int, start func(t testing.TB, seed uint64) Forecast) {
	t.Helper()
	seeds.Each(t, worlds, func(t *testing.T, seed uint64) {
		t.Helper()
		f := start(t, seed)
		f.World.NodeAgents()
		simulate.Settle(t, f.World, f.Planner, passesOfForecast)
		before := foretold.Portray(f.World.Pods())
		rng := rand.New(rand.NewPCG(seed, 17)) //nolint:gosec // a simulation needs no secrecy
		changes := templateChanges()
		var names []string
		warnings := f.Edit(func(t *corev1.PodTemplateSpec) {
			for range 1 + rng.IntN(2) {
				chosen := changes[rng.IntN(len(changes))]
				names = append(names, chosen.name)
				chosen.change(t)
			}
		})
		simulate.Settle(t, f.World, f.Planner, passesOfForecast)
		said := "nothing"
		if len(warnings) > 0 {
			said = warnings[0]
		}
		assert.Equal(t, foretold.By(said), before.Until(f.World.Pods()), "changes %v; the warning: %s\nthe story:\n%s", names, said, f.World.Story())
	})
}

type templateChange struct {
	name   string
	change func(*corev1.PodTemplateSpec)
}

// templateChanges are changes of all kinds of a template as ReadConfig leaves it.
func templateChanges() []templateChange {
	annotate := func(key, value string) func(*corev1.PodTemplateSpec) {
		return func(t *corev1.PodTemplateSpec) {
			if t.Annotations == nil {
				t.Annotations = map[string]string{}
			}
			t.Annotations[key] = value
		}
	}
	main := func(t *corev1.PodTemplateSpec) *corev1.Container { return &t.Spec.Containers[0] }
	proxy := func(t *corev1.PodTemplateSpec) *corev1.Container { return &t.Spec.InitContainers[0] }
	return []templateChange{
		{"nothing", func(*corev1.PodTemplateSpec) {}},
		{"image of main", func(t *corev1.PodTemplateSpec) { main(t).Image = "app:2" }},
		{"image of side", func(t *corev1.PodTemplateSpec) { t.Spec.Containers[1].Image = "side:2" }},
		{"image of proxy", func(t *corev1.PodTemplateSpec) { proxy(t).Image = "proxy:2" }},
		{"label", func(t *corev1.PodTemplateSpec) { t.Labels["tier"] = "front" }},
		{"annotation", annotate("example.com/plain", "2")},
		{"annotation of main", annotate(ConfigAnnotation, "2")},
		{"annotation of proxy", annotate(proxyAnnotation, "2")},
		{"restart of all", annotate(contract.RestartInPlaceAnnotation, "1")},
		{"restart of side", annotate(contract.RestartInPlaceAnnotation, "1 side")},
		{"cpu of proxy", func(t *corev1.PodTemplateSpec) { proxy(t).Resources = requests("2") }},
		{"no cpu of proxy", func(t *corev1.PodTemplateSpec) { proxy(t).Resources = corev1.ResourceRequirements{} }},
		{"cpu of main", func(t *corev1.PodTemplateSpec) { main(t).Resources = requests("2") }},
		{"order of variables", func(t *corev1.PodTemplateSpec) { slices.Reverse(main(t).Env) }},
		{"another variable", func(t *corev1.PodTemplateSpec) {
			main(t).Env = append(main(t).Env, corev1.EnvVar{Name: "MODE", Value: "2"})
		}},
		{"port", func(t *corev1.PodTemplateSpec) { main(t).Ports = []corev1.ContainerPort{{ContainerPort: 80}} }},
		{"init container", func(t *corev1.PodTemplateSpec) {
			t.Spec.InitContainers = append(t.Spec.InitContainers, corev1.Container{Name: "setup", Image: "setup:1"})
		}},
	}
}
