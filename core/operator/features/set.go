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

// Set has the values of the feature gates of core and of an operator. It never changes; the zero value has no feature gate.
type Set struct {
	enabled map[Name]bool
}

// Enabled reports whether a feature gate is on. It panics on a name that is neither one of core nor of the operator, which is a
// bug.
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

// Defaults returns the feature gates of core and these with their defaults.
func Defaults(gates ...Gate) Set {
	set := Set{enabled: map[Name]bool{}}
	for _, gate := range known(gates) {
		set.enabled[gate.Name] = gate.Default
	}
	return set
}

// known returns the feature gates of an operator, and those of core that it does not read.
func known(gates []Gate) []Gate {
	return append(slices.Clone(gates), slices.DeleteFunc(shared(), func(g Gate) bool { return has(gates, g.Name) })...)
}

func has(gates []Gate, name Name) bool {
	return slices.ContainsFunc(gates, func(g Gate) bool { return g.Name == name })
}

// Source has the inputs that set the feature gates.
type Source struct {
	// Flag is the value of --feature-gates: A=true,B=false. AllAlpha and AllBeta set all feature gates that are off or
	// on by default and are not named themselves.
	Flag string
	// Getenv reads the environment. Nil means an empty environment.
	Getenv func(string) string
	// Gates are the feature gates that this operator reads.
	Gates []Gate
}

// Parse returns the set that a source describes, after applying the dependencies between feature gates, and notes for
// the log: feature gates that this operator ignores and those that a dependency changed. The error names the feature
// gate that is unknown or has a bad value.
func Parse(source Source) (Set, []string, error) {
	gates := known(source.Gates)
	specs := source.specs()
	values := featuregate.NewFeatureGate()
	if err := values.Add(specs); err != nil {
		return Set{}, nil, fmt.Errorf("build feature gates: %w", err)
	}
	if err := values.SetWithLogger(logr.Discard(), source.Flag); err != nil {
		return Set{}, nil, fmt.Errorf("parse feature gates: %w", err)
	}
	notes := source.ignored(specs, values.ExplicitlySet)
	set := Set{enabled: map[Name]bool{}}
	for _, gate := range gates {
		enabled, because := gate.resolve(values.Enabled)
		set.enabled[gate.Name] = enabled
		if because != "" && has(source.Gates, gate.Name) {
			notes = append(notes, fmt.Sprintf("feature gate %s is set to %t because %s", gate.Name, enabled, because))
		}
	}
	return set, notes, nil
}

// specs returns the feature gates that the flag may have: those that are known and those that are only accepted.
func (s Source) specs() map[Name]featuregate.FeatureSpec {
	on := featuregate.FeatureSpec{Default: true, PreRelease: featuregate.Beta}
	off := featuregate.FeatureSpec{Default: false, PreRelease: featuregate.Alpha}
	specs := map[Name]featuregate.FeatureSpec{}
	for _, name := range accepted() {
		specs[name] = off
	}
	for _, gate := range known(s.Gates) {
		specs[gate.Name] = off
		if gate.Default {
			specs[gate.Name] = on
		}
	}
	if s.podWebhookUnused() {
		specs[PodWebhook] = featuregate.FeatureSpec{Default: false, PreRelease: featuregate.Beta}
	}
	return specs
}

// resolve returns the value of a feature gate after the dependencies, and the reason if it differs from the value that is set.
func (g Gate) resolve(set func(Name) bool) (enabled bool, because string) {
	enabled = set(g.Name)
	if g.Needs != "" && !set(g.Needs) {
		if enabled {
			because = fmt.Sprintf("%s is false", g.Needs)
		}
		return false, because
	}
	for _, name := range g.ImpliedBy {
		if !enabled && set(name) {
			return true, fmt.Sprintf("%s is true", name)
		}
	}
	return enabled, ""
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
		if explicit(name) && !has(s.Gates, name) {
			notes = append(notes, fmt.Sprintf("feature gate %s is not used by this operator and is ignored", name))
		}
	}
	return notes
}

// Help describes the feature gates with their defaults, one a line, for the help text of --feature-gates.
func Help(gates ...Gate) string {
	sorted := slices.SortedFunc(slices.Values(gates), func(a, b Gate) int { return strings.Compare(string(a.Name), string(b.Name)) })
	lines := []string{"A comma-separated list of Name=true|false. Gates of other operators are accepted and ignored. This operator knows:"}
	for _, gate := range sorted {
		lines = append(lines, fmt.Sprintf("%s (default %t): %s", gate.Name, gate.Default, gate.Help))
	}
	return strings.Join(lines, "\n")
}
