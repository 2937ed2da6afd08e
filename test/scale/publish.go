package scale

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/test/records"
)

const (
	// published is the record that the docs show, page the page with its table, and plots the folder with the texts of its
	// pictures, in the repository.
	published = "docs/performance/run.json"
	page      = "docs/performance.md"
	plots     = "docs/pictures"
)

// Publish writes the table and the texts of the pictures of the published record.
func Publish(root string) error {
	run, err := ReadRecord(filepath.Join(root, published))
	if err != nil {
		return err
	}
	errs := []error{records.Publish(root, page, "gate", run.table())}
	for _, p := range pictures() {
		text, err := run.plot(p)
		errs = append(errs, err, os.WriteFile(filepath.Join(root, p.file()), text, 0o644))
	}
	return errors.Join(errs...)
}

// measured is one load in all its rounds.
type measured []Row

func (m measured) mean(of func(Row) float64) float64 { return mean(m, of) }

// loads returns the loads with counted requests, in the order of features and of the run.
func (r Record) loads() []measured {
	var all []measured
	for _, feature := range slices.Sorted(maps.Keys(r.Features)) {
		rows := r.Features[feature]
		for _, row := range rows {
			if row.Round == 1 && row.Pods > 0 && !row.uncounted() {
				all = append(all, rounds(rows, row.Load))
			}
		}
	}
	return all
}

// table returns the means as a table in Markdown.
func (r Record) table() string {
	var b strings.Builder
	of := "one round"
	if r.Rounds > 1 {
		of = fmt.Sprintf("means of %d rounds", r.Rounds)
	}
	fmt.Fprintf(&b, "Commit `%s` on Kubernetes %s, %s: %s.\n\n", records.Short(r.Commit), r.Machine.Kubernetes, r.Date.Format("2 January 2006"), of)
	b.WriteString("| load | objects | writes for each | other writes | reads | Events | 409 | pod start: p50, p90, p99 | CPU for each | memory |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n")
	for _, m := range r.loads() {
		fmt.Fprintf(&b, "| %s | %d | %.3g | %.0f | %s | %.0f | %.2g | %s | %.2f ms | %.0f MiB |\n", m[0].Load, m[0].Pods, m.mean(Row.perPod),
			m.mean(Row.otherWrites), m.reads(), m.mean(func(r Row) float64 { return float64(r.Events) }),
			m.mean(func(r Row) float64 { return float64(r.Conflicts) }), m.podStart(), m.mean(Row.milliseconds), m.mean(Row.memory))
	}
	return b.String()
}

// otherWrites returns the number of writes of other resources.
func (r Row) otherWrites() float64 {
	n := 0
	for kind, times := range r.Writes {
		if !strings.Contains(kind, " "+r.resource()) {
			n += times
		}
	}
	return float64(n)
}

// milliseconds returns the CPU time of the controller for each object.
func (r Row) milliseconds() float64 { return 1000 * r.cpu() }

// reads returns the number of reads without watches. It is empty for built-in kinds, which share the caches of one process.
func (m measured) reads() string {
	if m[0].isBuiltIn() {
		return ""
	}
	return fmt.Sprintf("%.0f", m.mean(func(r Row) float64 {
		n := 0
		for kind, times := range r.Reads {
			if !strings.HasPrefix(kind, "watch ") {
				n += times
			}
		}
		return float64(n)
	}))
}

// podStart returns the percentiles of the pod startup latency, empty if the load created no pods.
func (m measured) podStart() string {
	if m[0].ToReadyP90 == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f, %.2f, %.2f s", m.mean(func(r Row) float64 { return r.ToReady }), m.mean(func(r Row) float64 { return r.ToReadyP90 }),
		m.mean(func(r Row) float64 { return r.ToReadyP99 }))
}

// isBuiltIn reports whether the load was on a built-in kind.
func (r Row) isBuiltIn() bool { return r.Controller == "kube-controller-manager" }

// picture has bars of one figure, by load.
type picture struct {
	name, title, unit string
	of                func(Row) float64
	sparse            bool // loads without the figure have no bar
}

func pictures() []picture {
	return []picture{
		{"writes", "Writes for each object", "writes for each object (grey: built-in kinds)", Row.perPod, false},
		{"start", "Pod start", "seconds from a pod's creation to Ready, median (grey: built-in kinds)", func(r Row) float64 { return r.ToReady }, true},
		{"cpu", "CPU for each object", "milliseconds of CPU for each object (grey: the whole kube-controller-manager)", Row.milliseconds, false},
	}
}

// file is the text of the picture, in the repository.
func (p picture) file() string { return plots + "/" + p.name + ".yaml" }

// plot returns the text of a picture.
func (r Record) plot(p picture) ([]byte, error) {
	type bar struct {
		Name  string  `json:"name"`
		Value float64 `json:"value"`
		Color string  `json:"color"`
	}
	var all []bar
	var words []string
	for _, m := range r.loads() {
		value, err := strconv.ParseFloat(fmt.Sprintf("%.3g", m.mean(p.of)), 64)
		if err != nil {
			return nil, fmt.Errorf("round the figure of %s: %w", m[0].Load, err)
		}
		if p.sparse && value == 0 {
			continue
		}
		color := "blue"
		if m[0].isBuiltIn() {
			color = "grey"
		}
		all = append(all, bar{m[0].Load, value, color})
		words = append(words, fmt.Sprintf("%s %.3g", m[0].Load, value))
	}
	text, err := yaml.Marshal(map[string]any{
		"title":       p.title,
		"description": p.title + ", by load. " + strings.Join(words, "; ") + ".",
		"bars":        map[string]any{"unit": p.unit, "bars": all},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the picture: %w", err)
	}
	return append([]byte("# The figures of docs/performance/run.json. make generate writes it, and draws "+p.name+".svg from it.\n"), text...), nil
}
