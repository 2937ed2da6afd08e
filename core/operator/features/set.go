package features

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/component-base/featuregate"
)

// ResourceEnableEnv names the variable that lists the kinds an installation uses, separated by commas.
// When it is set and does not list SidecarSet, PodWebhook is off unless --feature-gates says otherwise.
const ResourceEnableEnv = "CUSTOM_RESOURCE_ENABLE"

// Set says for every gate whether it is on. It never changes; the zero value knows no gate.
type Set struct {
	enabled map[Name]bool
}

// Enabled reports whether a gate is on. It panics on a name that is not in the table: that is a fault of
// the program, never of its user.
func (s Set) Enabled(name Name) bool {
	enabled, known := s.enabled[name]
	if !known {
		panic(fmt.Sprintf("feature gate %s is not known", name))
	}
	return enabled
}

// With returns a copy of the set in which one gate has the given value. It is meant for tests and for
// gates that depend on what the cluster serves.
func (s Set) With(name Name, enabled bool) Set {
	copied := maps.Clone(s.enabled)
	if copied == nil {
		copied = map[Name]bool{}
	}
	copied[name] = enabled
	return Set{enabled: copied}
}

// String lists the gates that are on, sorted by name.
func (s Set) String() string {
	var on []string
	for name, enabled := range s.enabled {
		if enabled {
			on = append(on, string(name))
		}
	}
	slices.Sort(on)
	return strings.Join(on, ",")
}

// Defaults returns every gate at its default.
func Defaults() Set {
	set := Set{enabled: map[Name]bool{}}
	for name, spec := range defaults() {
		set.enabled[name] = spec.Default
	}
	return set
}

// Source is where the values of the gates come from.
type Source struct {
	// Flag is the value of --feature-gates: A=true,B=false. AllAlpha and AllBeta stand for all gates that
	// are off or on by default and are not named themselves.
	Flag string
	// Getenv reads the environment. Nil means an empty environment.
	Getenv func(string) string
	// Consulted are the gates that this operator reads.
	Consulted []Name
}

// Parse returns the set that a source asks for, with the dependencies between gates applied, and what the
// log should say about it: gates that this operator ignores and gates that a dependency changed. The error
// names the gate that is unknown or has a bad value.
func Parse(source Source) (Set, []string, error) {
	specs := defaults()
	if source.podWebhookUnused() {
		specs[PodWebhook] = featuregate.FeatureSpec{Default: false, PreRelease: featuregate.Beta}
	}
	gate := featuregate.NewFeatureGate()
	if err := gate.Add(specs); err != nil {
		return Set{}, nil, fmt.Errorf("build feature gates: %w", err)
	}
	if err := gate.SetWithLogger(logr.Discard(), source.Flag); err != nil {
		return Set{}, nil, fmt.Errorf("parse feature gates: %w", err)
	}

	set := Set{enabled: map[Name]bool{}}
	for name := range specs {
		set.enabled[name] = gate.Enabled(name)
	}
	notes := slices.Concat(source.ignored(specs, gate.ExplicitlySet), source.applyCascades(set.enabled))
	return set, notes, nil
}

// podWebhookUnused reads ResourceEnableEnv: SidecarSet was the kind that could not do without pod admission.
func (s Source) podWebhookUnused() bool {
	if s.Getenv == nil {
		return false
	}
	kinds := s.Getenv(ResourceEnableEnv)
	return kinds != "" && !slices.Contains(strings.Split(kinds, ","), "SidecarSet")
}

func (s Source) ignored(specs map[Name]featuregate.FeatureSpec, explicit func(Name) bool) []string {
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		if explicit(name) && !slices.Contains(s.Consulted, name) {
			notes = append(notes, fmt.Sprintf("feature gate %s is not used by this operator and is ignored", name))
		}
	}
	return notes
}

// applyCascades changes enabled and tells about the changes that this operator can notice.
func (s Source) applyCascades(enabled map[Name]bool) []string {
	var notes []string
	for _, rule := range cascades() {
		if enabled[rule.when] != rule.is {
			continue
		}
		for _, name := range rule.effect {
			if enabled[name] == rule.value {
				continue
			}
			enabled[name] = rule.value
			if slices.Contains(s.Consulted, name) {
				notes = append(notes, fmt.Sprintf("feature gate %s is set to %t because %s is %t", name, rule.value, rule.when, rule.is))
			}
		}
	}
	return notes
}

// Help describes the given gates with their defaults, one a line, for the help text of --feature-gates.
func Help(names ...Name) string {
	specs := defaults()
	lines := []string{"A comma-separated list of Name=true|false. Gates of other operators are accepted and ignored. This operator knows:"}
	for _, name := range slices.Sorted(slices.Values(names)) {
		lines = append(lines, fmt.Sprintf("%s (default %t)", name, specs[name].Default))
	}
	return strings.Join(lines, "\n")
}
