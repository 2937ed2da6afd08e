package simulate

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
)

// Forecast is a workload of which a user edits the template once it has settled.
type Forecast struct {
	World   *World
	Planner Planner
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
		Settle(t, f.World, f.Planner, passesOfForecast)
		before := portray(f.World)
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
		Settle(t, f.World, f.Planner, passesOfForecast)
		said := "nothing"
		if len(warnings) > 0 {
			said = warnings[0]
		}
		assert.Equal(t, foretold(said), before.until(portray(f.World)), "changes %v; the warning: %s\nthe story:\n%s", names, said, f.World.Story())
	})
}

// outcome is the effect of an edit on the pods: how many were replaced or updated in place, and the containers that
// were restarted in those.
type outcome struct {
	recreated, inPlace int
	restarted          string
}

var (
	recreation = regexp.MustCompile(`^(\d+) of \d+ pods will be recreated`)
	inPlace    = regexp.MustCompile(`^(\d+) of \d+ pods will be updated in place`)
	container  = regexp.MustCompile(`(\S+) \([a-z, ]+\)`)
)

// foretold is the outcome that the warning names.
func foretold(warning string) (o outcome) {
	if m := recreation.FindStringSubmatch(warning); m != nil {
		o.recreated, _ = strconv.Atoi(m[1])
	}
	if m := inPlace.FindStringSubmatch(warning); m != nil {
		o.inPlace, _ = strconv.Atoi(m[1])
		var names []string
		for _, c := range container.FindAllStringSubmatch(warning, -1) {
			names = append(names, c[1])
		}
		slices.Sort(names)
		o.restarted = strings.Join(names, " ")
	}
	return o
}

// portrait is the pods by their UIDs: the revision and the containers, with their IDs, of each.
type portrait map[types.UID]map[string]string

func portray(w *World) portrait {
	all := portrait{}
	for _, pod := range w.Pods() {
		p := map[string]string{contract.RevisionLabel: pod.Labels[contract.RevisionLabel]}
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			p[s.Name] = s.ContainerID
		}
		all[pod.UID] = p
	}
	return all
}

// until is what has happened to the pods between the two portraits.
func (p portrait) until(now portrait) (o outcome) {
	restarts := map[string]bool{}
	for uid, was := range p {
		is, stays := now[uid]
		switch {
		case !stays:
			o.recreated++
		case is[contract.RevisionLabel] != was[contract.RevisionLabel]:
			o.inPlace++
		}
		var names []string
		for name, id := range is {
			if name != contract.RevisionLabel && id != was[name] {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		if stays && is[contract.RevisionLabel] != was[contract.RevisionLabel] {
			restarts[strings.Join(names, " ")] = true
		} else if len(names) > 0 {
			restarts[fmt.Sprintf("a pod of the same revision: %v", names)] = true
		}
	}
	var all []string
	for names := range restarts {
		all = append(all, names)
	}
	slices.Sort(all)
	o.restarted = strings.Join(all, "; ")
	return o
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
