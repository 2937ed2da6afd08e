package scale

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Verdict compares one figure of a run with its bound.
type Verdict struct {
	// Feature and Load are the place of the bound in bounds.yaml.
	Feature, Load string
	// Bound names the figure, such as "create pods a pod".
	Bound string
	// Measured is the figure: of the worst round if the bound is exact, else the mean of all rounds. Limit is the most that it may be.
	Measured, Limit float64
	// Commit is the commit that was measured.
	Commit string
}

// tolerance is for the last digit of quotients.
const tolerance = 1e-9

// Broken reports whether the figure exceeds its limit.
func (v Verdict) Broken() bool { return v.Measured > v.Limit+tolerance }

// Judge compares a complete run with the bounds, with the relative ones only if the run had DefaultPods, as the means of record.
// It returns an error if a load has no bounds, or a bound no load.
func (b Bounds) Judge(run Record) ([]Verdict, error) {
	var all []Verdict
	for _, feature := range slices.Sorted(maps.Keys(run.Features)) {
		rows := run.Features[feature]
		if err := b.measured(feature, rows).ToAggregate(); err != nil {
			return all, err
		}
		exact, err := b.JudgeCounts(feature, run.Commit, rows)
		if err != nil {
			return all, err
		}
		all = append(all, exact...)
		if run.Pods != DefaultPods {
			continue
		}
		relative, err := b.judgeMeans(feature, run.Commit, rows)
		if err != nil {
			return all, err
		}
		all = append(all, relative...)
	}
	return all, nil
}

// measured returns an error for each bound of a load that was not measured.
func (b Bounds) measured(feature string, rows []Row) field.ErrorList {
	loads := map[string]bool{}
	for _, r := range rows {
		loads[r.Load] = true
	}
	var all field.ErrorList
	check := func(path *field.Path, load string) {
		if !loads[load] {
			all = append(all, field.NotFound(path, load))
		}
	}
	for _, load := range slices.Sorted(maps.Keys(b[feature].Exact)) {
		check(field.NewPath(feature, "exact").Key(load), load)
	}
	for _, load := range slices.Sorted(maps.Keys(b[feature].Relative)) {
		check(field.NewPath(feature, "relative").Key(load), load)
	}
	return all
}

// JudgeCounts compares the counted requests of the feature's operator with their bounds. Rows of others are ignored. It returns
// an error if a load has no bounds.
func (b Bounds) JudgeCounts(feature, commit string, rows []Row) ([]Verdict, error) {
	worst := map[string]map[string]Verdict{} // by load and bound
	for _, r := range rows {
		if r.Controller != (Options{Feature: feature}).operator() || r.uncounted() {
			continue
		}
		bound, ok := b[feature].Exact[r.Load]
		if !ok {
			return nil, field.Required(field.NewPath(feature, "exact").Key(r.Load), "the load was measured and has no bounds")
		}
		if worst[r.Load] == nil {
			worst[r.Load] = map[string]Verdict{}
		}
		for _, v := range bound.judge(r) {
			if before, ok := worst[r.Load][v.Bound]; !ok || v.Measured > before.Measured {
				v.Feature, v.Commit = feature, commit
				worst[r.Load][v.Bound] = v
			}
		}
	}
	var all []Verdict
	for _, load := range slices.Sorted(maps.Keys(worst)) {
		for _, name := range slices.Sorted(maps.Keys(worst[load])) {
			all = append(all, worst[load][name])
		}
	}
	return all, nil
}

// uncounted reports whether the requests of the load were not counted: each load on pods has writes.
func (r Row) uncounted() bool { return r.Pods > 0 && len(r.Writes) == 0 }

// judge compares one row with its bounds.
func (c Counted) judge(r Row) []Verdict {
	all := []Verdict{
		{Bound: "conflicts", Measured: float64(r.Conflicts), Limit: c.Conflicts},
		r.verdict("Events", r.resource(), r.Events, c.Events),
	}
	for _, kind := range kinds(r.Writes, c.Writes) {
		if !slices.Contains(c.Varying, kind) {
			all = append(all, r.verdict(kind, kind, r.Writes[kind], c.Writes[kind]))
		}
	}
	for _, kind := range kinds(r.Reads, c.Reads) {
		if !slices.Contains(c.Varying, kind) && !strings.HasPrefix(kind, "watch ") {
			all = append(all, r.verdict(kind, "", r.Reads[kind], c.Reads[kind]))
		}
	}
	for i := range all {
		all[i].Load = r.Load
	}
	return all
}

// kinds returns the kinds of requests that were counted or have a bound.
func kinds(counted map[string]int, most map[string]float64) []string {
	all := map[string]bool{}
	for kind := range counted {
		all[kind] = true
	}
	for kind := range most {
		all[kind] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// verdict compares n requests about a resource with their limit: a minute while idle, for each object if the resource is pods or
// that of the load, else in the whole load.
func (r Row) verdict(bound, resource string, n int, limit float64) Verdict {
	switch {
	case r.Pods == 0:
		return Verdict{
			Bound:    bound + " a minute",
			Measured: float64(n) * 60 / r.Done,
			Limit:    limit,
		}
	case strings.Contains(" "+resource, " "+r.resource()), strings.Contains(resource, " pods"):
		return Verdict{
			Bound:    bound + " a " + strings.TrimSuffix(r.resource(), "s"),
			Measured: r.each(n),
			Limit:    limit,
		}
	}
	return Verdict{
		Bound:    bound,
		Measured: float64(n),
		Limit:    limit,
	}
}
