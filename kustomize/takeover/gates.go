package takeover

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// gateFlag is the flag of the old manager that sets feature gates.
const gateFlag = "--feature-gates="

// gate is a feature gate of the old manager.
type gate struct {
	name string
	// on means that it is on where the flag does not name it.
	on bool
}

// gatesOf are the gates that must be off for a feature: their work is done in webhooks for pods, which all features of the
// old manager share, and in controllers that write to pods which the kind does not own. One that is off by default is left
// out of the flag, because managers that are older than the gate would not start.
func gatesOf(feature string) []gate {
	switch feature {
	case "budget":
		return []gate{{"PodUnavailableBudgetDeleteGate", true}, {"PodUnavailableBudgetUpdateGate", false}}
	case "jobs":
		return []gate{{"ImagePullJobGate", false}, {"SidecarTerminator", false}}
	case "spread":
		return []gate{{"WorkloadSpread", true}}
	}
	return nil
}

// onGates returns the names of the gates that are on with the arguments of a container.
func onGates(arguments []string, gates []gate) []string {
	set := map[string]string{}
	for _, argument := range arguments {
		if settings, ok := strings.CutPrefix(argument, gateFlag); ok {
			for setting := range strings.SplitSeq(settings, ",") {
				name, value, _ := strings.Cut(strings.TrimSpace(setting), "=")
				set[name] = strings.ToLower(value)
			}
		}
	}
	var names []string
	for _, g := range gates {
		value, named := set[g.name]
		if (named && value != "false") || (!named && g.on) {
			names = append(names, g.name)
		}
	}
	return names
}

// setGates returns arguments of a container that turn gates on or off; all others stay.
func setGates(arguments, names []string, on bool) []string {
	value := "false"
	if on {
		value = "true"
	}
	var settings []string
	next := slices.DeleteFunc(slices.Clone(arguments), func(argument string) bool {
		text, ok := strings.CutPrefix(argument, gateFlag)
		if ok && text != "" {
			settings = append(settings, strings.Split(text, ",")...)
		}
		return ok
	})
	settings = slices.DeleteFunc(settings, func(setting string) bool {
		name, _, _ := strings.Cut(strings.TrimSpace(setting), "=")
		return slices.Contains(names, name)
	})
	for _, name := range names {
		settings = append(settings, name+"="+value)
	}
	return append(next, gateFlag+strings.Join(settings, ","))
}

// withGates returns a Deployment of the old manager with the gates on or off, and the gates that this changes. Only the
// first container counts: it is the manager.
func withGates(deployment *unstructured.Unstructured, gates []gate, on bool) (*unstructured.Unstructured, []string) {
	next := deployment.DeepCopy()
	containers, _, _ := unstructured.NestedSlice(next.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return next, nil
	}
	manager, _ := containers[0].(map[string]any)
	arguments, _, _ := unstructured.NestedStringSlice(manager, "args")
	names := onGates(arguments, gates)
	if on {
		names = slices.DeleteFunc(namesOf(gates), func(name string) bool { return slices.Contains(names, name) })
	}
	if len(names) == 0 {
		return next, nil
	}
	_ = unstructured.SetNestedStringSlice(manager, setGates(arguments, names, on), "args") // strings can be set
	_ = unstructured.SetNestedSlice(next.Object, containers, "spec", "template", "spec", "containers")
	return next, names
}

func namesOf(gates []gate) []string {
	var names []string
	for _, g := range gates {
		names = append(names, g.name)
	}
	return names
}
