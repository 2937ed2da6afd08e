package features

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/component-base/featuregate"
)

// resourceEnableEnv is the environment variable that lists the kinds an installation uses, separated by commas. If it
// is set and does not list SidecarSet, PodWebhook is off unless --feature-gates sets it.
const resourceEnableEnv = "CUSTOM_RESOURCE_ENABLE"

// Set has the value of every feature gate. It never changes; the zero value has no feature gate.
type Set struct {
	enabled map[Name]bool
}

// Enabled reports whether a feature gate is on. It panics on a name that is not in the table, which is a bug.
func (s Set) Enabled(name Name) bool {
	enabled, known := s.enabled[name]
	if !known {
		panic(fmt.Sprintf("feature gate %s is not known", name))
	}
	return enabled
}

// With returns a copy of the set in which one feature gate has the given value. It is for tests and for feature gates
// that depend on the kinds that the cluster serves.
func (s Set) With(name Name, enabled bool) Set {
	copied := maps.Clone(s.enabled)
	if copied == nil {
		copied = map[Name]bool{}
	}
	copied[name] = enabled
	return Set{enabled: copied}
}

// String lists the feature gates that are on, sorted by name.
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

// Defaults returns all feature gates with their defaults.
func Defaults() Set {
	set := Set{enabled: map[Name]bool{}}
	for name, spec := range defaults() {
		set.enabled[name] = spec.Default
	}
	return set
}

// Source has the inputs that set the feature gates.
type Source struct {
	// Flag is the value of --feature-gates: A=true,B=false. AllAlpha and AllBeta set all feature gates that are off or
	// on by default and are not named themselves.
	Flag string
	// Getenv reads the environment. Nil means an empty environment.
	Getenv func(string) string
	// Consulted are the feature gates that this operator reads.
	Consulted []Name
}

// Parse returns the set that a source describes, after applying the dependencies between feature gates, and notes for
// the log: feature gates that this operator ignores and those that a dependency changed. The error names the feature
// gate that is unknown or has a bad value.
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
	notes := slices.Concat(source.ignored(specs, gate.ExplicitlySet), source.applyDependencies(set.enabled))
	return set, notes, nil
}

// podWebhookUnused evaluates resourceEnableEnv: SidecarSet was the kind that could not work without pod admission.
func (s Source) podWebhookUnused() bool {
	if s.Getenv == nil {
		return false
	}
	kinds := s.Getenv(resourceEnableEnv)
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

// applyDependencies changes enabled and returns notes about the changes that affect this operator.
func (s Source) applyDependencies(enabled map[Name]bool) []string {
	var notes []string
	for _, rule := range dependencies() {
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

// Help describes the feature gates with their defaults, one a line, for the help text of --feature-gates.
func Help(names ...Name) string {
	specs := defaults()
	lines := []string{"A comma-separated list of Name=true|false. Gates of other operators are accepted and ignored. This operator knows:"}
	for _, name := range slices.Sorted(slices.Values(names)) {
		lines = append(lines, fmt.Sprintf("%s (default %t)", name, specs[name].Default))
	}
	return strings.Join(lines, "\n")
}
