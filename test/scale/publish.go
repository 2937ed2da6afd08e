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
	// published is the record that the docs show, plot the text of its picture, and page the page with its table, in the
	// repository.
	published = "docs/performance/run.json"
	plot      = "docs/pictures/writes.yaml"
	page      = "docs/performance.md"
)

// Publish writes the table and the text of the picture of the published record.
func Publish(root string) error {
	run, err := ReadRecord(filepath.Join(root, published))
	if err != nil {
		return err
	}
	picture, err := run.plot()
	if err != nil {
		return err
	}
	return errors.Join(
		records.Publish(root, page, "gate", run.table()),
		os.WriteFile(filepath.Join(root, plot), picture, 0o644),
	)
}

// loads returns the loads with counted requests, in the order of features and of the run: for each the row of the last round.
func (r Record) loads() []Row {
	var all []Row
	for _, feature := range slices.Sorted(maps.Keys(r.Features)) {
		for _, row := range r.Features[feature] {
			if row.Round == r.Rounds && row.Pods > 0 && !row.uncounted() {
				all = append(all, row)
			}
		}
	}
	return all
}

// table returns the counts as a table in Markdown.
func (r Record) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Commit `%s` on Kubernetes %s, %s.\n\n", records.Short(r.Commit), r.Machine.Kubernetes, r.Date.Format("2 January 2006"))
	b.WriteString("| load | objects | writes for each | other writes | reads | Events | 409 | pod start: p50, p90, p99 |\n|---|---|---|---|---|---|---|---|\n")
	for _, row := range r.loads() {
		fmt.Fprintf(&b, "| %s | %d | %.3g | %d | %s | %d | %d | %s |\n", row.Load, row.Pods, row.perPod(), row.otherWrites(), row.reads(),
			row.Events, row.Conflicts, row.podStart())
	}
	return b.String()
}

// otherWrites returns the number of writes of other resources.
func (r Row) otherWrites() (n int) {
	for kind, times := range r.Writes {
		if !strings.Contains(kind, " "+r.resource()) {
			n += times
		}
	}
	return n
}

// reads returns the number of reads without watches. It is empty for built-in kinds, which share the caches of one process.
func (r Row) reads() string {
	if r.isBuiltIn() {
		return ""
	}
	n := 0
	for kind, times := range r.Reads {
		if !strings.HasPrefix(kind, "watch ") {
			n += times
		}
	}
	return strconv.Itoa(n)
}

// podStart returns the percentiles of the pod startup latency, empty if the load created no pods.
func (r Row) podStart() string {
	if r.ToReadyP90 == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f, %.2f, %.2f s", r.ToReady, r.ToReadyP90, r.ToReadyP99)
}

// isBuiltIn reports whether the load was on a built-in kind.
func (r Row) isBuiltIn() bool { return r.Controller == "kube-controller-manager" }

// plot returns the text of the picture.
func (r Record) plot() ([]byte, error) {
	type bar struct {
		Name  string  `json:"name"`
		Value float64 `json:"value"`
		Color string  `json:"color"`
	}
	var all []bar
	var words []string
	for _, row := range r.loads() {
		color := "blue"
		if row.isBuiltIn() {
			color = "grey"
		}
		all = append(all, bar{row.Load, row.perPod(), color})
		words = append(words, fmt.Sprintf("%s %.3g", row.Load, row.perPod()))
	}
	text, err := yaml.Marshal(map[string]any{
		"title":       "Writes for each object",
		"description": "The writes of a controller for each object of a load. " + strings.Join(words, "; ") + ".",
		"bars":        map[string]any{"unit": "writes for each object (grey: built-in kinds)", "bars": all},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the picture: %w", err)
	}
	return append([]byte("# The counts of docs/performance/run.json. make generate writes it, and draws writes.svg from it.\n"), text...), nil
}
