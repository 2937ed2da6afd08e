package scale

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

//go:embed bounds.yaml
var boundsOfRecord []byte

// Margin is by which share a run may exceed a mean of record.
const Margin = 0.2

// Bounds have the limits of each feature, by its name.
type Bounds map[string]FeatureBounds

// FeatureBounds are the bounds of one feature, by the name of a load.
type FeatureBounds struct {
	// Exact bounds are counts, which are the same on every machine.
	Exact map[string]Counted `json:"exact"`
	// Relative bounds are means of record, which a run may exceed by Margin.
	Relative map[string]Means `json:"relative"`
}

// Counted is how many requests of an operator a load may cost. While idle, each number is for a minute. Kinds of requests are
// such as "create pods". A kind in none of the lists may not occur.
type Counted struct {
	// Writes is the most writes of a kind: of pods and of the resource that the load is about, for each object of the load, and of
	// another resource in the whole load.
	Writes map[string]float64 `json:"writes"`
	// Reads is the most reads of a kind in the whole load. Watches have no bound, because clients renew them.
	Reads map[string]float64 `json:"reads"`
	// Varying are kinds with a number that depends on the speed of other processes.
	Varying []string `json:"varying"`
	// Events is the most Events for each object.
	Events float64 `json:"events"`
	// Conflicts is the most answers with status 409, in the whole load.
	Conflicts float64 `json:"conflicts"`
}

// Means are means over the rounds of one run. A field that is 0 has no bound.
type Means struct {
	// To is the load of the same run to which the ratios are.
	To string `json:"to"`
	// ToReady and ToReadyP99 are the ratio of the time from a pod's creation to Ready, median and 99th percentile.
	ToReady    float64 `json:"toReady"`
	ToReadyP99 float64 `json:"toReadyP99"`
	// CPU is the ratio of the controllers' CPU time for each object.
	CPU float64 `json:"cpu"`
	// MemoryMiB is the 95th percentile of resident memory.
	MemoryMiB float64 `json:"memoryMiB"`
}

// BoundsOfRecord returns the bounds of bounds.yaml.
func BoundsOfRecord() (Bounds, error) { return ParseBounds(boundsOfRecord) }

// ParseBounds reads bounds. An error names the field.
func ParseBounds(text []byte) (Bounds, error) {
	inJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("parse the bounds: %w", err)
	}
	var b Bounds
	unknown, err := json.UnmarshalStrict(bytes.TrimSpace(inJSON), &b)
	if err := errors.Join(err, errors.Join(unknown...)); err != nil {
		return nil, fmt.Errorf("parse the bounds: %w", err)
	}
	if err := b.validate().ToAggregate(); err != nil {
		return nil, fmt.Errorf("check the bounds: %w", err)
	}
	return b, nil
}

func (b Bounds) validate() field.ErrorList {
	var all field.ErrorList
	for _, name := range Features() {
		if _, ok := b[name]; !ok {
			all = append(all, field.Required(field.NewPath(name), "every feature that is measured has bounds"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		path := field.NewPath(name)
		if !slices.Contains(Features(), name) {
			all = append(all, field.NotSupported(path, name, Features()))
			continue
		}
		if len(b[name].Exact) == 0 {
			all = append(all, field.Required(path.Child("exact"), ""))
		}
		for load, c := range b[name].Exact {
			all = append(all, c.validate(path.Child("exact").Key(load))...)
		}
		for load, m := range b[name].Relative {
			all = append(all, m.validate(path.Child("relative").Key(load))...)
		}
	}
	return all
}

func (c Counted) validate(path *field.Path) field.ErrorList {
	all := atLeastZero(path, map[string]float64{"events": c.Events, "conflicts": c.Conflicts})
	all = append(all, atLeastZero(path.Child("writes"), c.Writes)...)
	all = append(all, atLeastZero(path.Child("reads"), c.Reads)...)
	for i, kind := range c.Varying {
		_, written := c.Writes[kind]
		if _, read := c.Reads[kind]; written || read {
			all = append(all, field.Duplicate(path.Child("varying").Index(i), kind))
		}
	}
	return all
}

func (m Means) validate(path *field.Path) field.ErrorList {
	all := atLeastZero(path, map[string]float64{
		"toReady":    m.ToReady,
		"toReadyP99": m.ToReadyP99,
		"cpu":        m.CPU,
		"memoryMiB":  m.MemoryMiB,
	})
	if m.To == "" && (m.ToReady > 0 || m.ToReadyP99 > 0 || m.CPU > 0) {
		all = append(all, field.Required(path.Child("to"), "a ratio is to a load of the same run"))
	}
	return all
}

func atLeastZero(path *field.Path, numbers map[string]float64) field.ErrorList {
	var all field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		if numbers[name] < 0 {
			all = append(all, field.Invalid(path.Child(name), numbers[name], "must be 0 or more"))
		}
	}
	return all
}
