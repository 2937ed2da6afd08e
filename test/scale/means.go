package scale

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// judgeMeans compares means over all rounds with the means of record.
func (b Bounds) judgeMeans(feature, commit string, rows []Row) ([]Verdict, error) {
	var all []Verdict
	for _, load := range slices.Sorted(maps.Keys(b[feature].Relative)) {
		m := b[feature].Relative[load]
		own, to := rounds(rows, load), rounds(rows, m.To)
		if m.To != "" && len(to) == 0 {
			return nil, field.NotFound(field.NewPath(feature, "relative").Key(load).Child("to"), m.To)
		}
		for _, figure := range figures() {
			record := figure.record(m)
			if record == 0 {
				continue
			}
			measured := mean(own, figure.of)
			if figure.ratio {
				measured /= mean(to, figure.of)
			}
			all = append(all, Verdict{
				Feature:  feature,
				Load:     load,
				Bound:    figure.name,
				Measured: measured,
				Limit:    record * (1 + Margin),
				Commit:   commit,
			})
		}
	}
	return all, nil
}

// figure is a figure of a row with a mean of record.
type figure struct {
	name   string
	ratio  bool // to the other load
	of     func(Row) float64
	record func(Means) float64
}

func figures() []figure {
	return []figure{
		{"creation to Ready, median, ratio", true, func(r Row) float64 { return r.ToReady }, func(m Means) float64 { return m.ToReady }},
		{"creation to Ready, p99, ratio", true, func(r Row) float64 { return r.ToReadyP99 }, func(m Means) float64 { return m.ToReadyP99 }},
		{"CPU for each object, ratio", true, Row.cpu, func(m Means) float64 { return m.CPU }},
		{"memory, 95th percentile, MiB", false, Row.memory, func(m Means) float64 { return m.MemoryMiB }},
	}
}

// cpu returns the CPU time of the controller for each object, in seconds.
func (r Row) cpu() float64 { return r.Costs[r.Controller].CPU / float64(max(r.Pods, 1)) }

// memory returns the 95th percentile of the controller's memory, in MiB.
func (r Row) memory() float64 { return float64(r.Costs[r.Controller].MemoryMiB) }

// rounds returns the rows of a load.
func rounds(rows []Row, load string) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Load != load })
}

func mean(rows []Row, of func(Row) float64) float64 {
	sum := 0.0
	for _, r := range rows {
		sum += of(r)
	}
	return sum / float64(max(len(rows), 1))
}
