package endurance

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// Margin is the share by which a figure may be higher at the end of the work than near its beginning.
const Margin = 0.1

// windows is the number of equal parts of the work: the second one, when caches and metrics have filled, is compared with the
// last one.
const windows = 6

// Verdict compares a figure near the beginning of the work with the same at its end.
type Verdict struct {
	// Operator is the feature whose manager it is, and Figure what was measured.
	Operator, Figure string
	// Early is the figure in the second sixth of the work, Late in the last one. Limit is the most that Late may be.
	Early, Late, Limit float64
}

// Grows reports whether the figure exceeds its limit.
func (v Verdict) Grows() bool { return v.Late > v.Limit }

// figure is a figure of samples. Slack is what may be added in any case, such as a goroutine of a request.
type figure struct {
	name  string
	of    func(Sample) float64
	join  func([]float64) float64
	slack float64
}

func figures() []figure {
	return []figure{
		{"memory, MiB", func(s Sample) float64 { return s.MemoryMiB }, mean, 2},
		{"lowest heap, MiB", func(s Sample) float64 { return s.HeapMiB }, slices.Min[[]float64], 1},
		{"goroutines", func(s Sample) float64 { return s.Goroutines }, mean, 5},
		{"open files", func(s Sample) float64 { return s.Files }, mean, 2},
		{"series of metrics", func(s Sample) float64 { return s.Series }, mean, 20},
		{"requests in queues", func(s Sample) float64 { return s.Queued }, mean, 1},
	}
}

// Judge compares the samples of an operator that were taken during work of that duration. It returns an error if a window has
// none.
func Judge(operator string, samples []Sample, duration time.Duration) ([]Verdict, error) {
	early, late := window(samples, duration, 1), window(samples, duration, windows-1)
	if len(early) == 0 || len(late) == 0 {
		return nil, fmt.Errorf("%s has %d samples near the beginning and %d at the end of %s: both need one", operator, len(early), len(late), duration)
	}
	var all []Verdict
	for _, f := range figures() {
		v := Verdict{
			Operator: operator,
			Figure:   f.name,
			Early:    f.join(values(early, f.of)),
			Late:     f.join(values(late, f.of)),
		}
		v.Limit = v.Early*(1+Margin) + f.slack
		all = append(all, v)
	}
	return all, nil
}

// window returns the samples of one part of the work, counted from 0.
func window(samples []Sample, duration time.Duration, part int) []Sample {
	length := duration / windows
	var in []Sample
	for _, s := range samples {
		if at := s.At - time.Duration(part)*length; at >= 0 && at < length {
			in = append(in, s)
		}
	}
	return in
}

func values(samples []Sample, of func(Sample) float64) []float64 {
	all := make([]float64, 0, len(samples))
	for _, s := range samples {
		all = append(all, of(s))
	}
	return all
}

func mean(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total / float64(len(values))
}

// Print writes a table of the verdicts and returns how many figures grow.
func Print(out io.Writer, verdicts []Verdict) (growing int, err error) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "operator\tfigure\tearly\tlate\tlimit\tverdict")
	for _, v := range verdicts {
		verdict := "flat"
		if v.Grows() {
			verdict = "GROWS"
			growing++
		}
		fmt.Fprintf(table, "%s\t%s\t%.1f\t%.1f\t%.1f\t%s\n", v.Operator, v.Figure, v.Early, v.Late, v.Limit, verdict)
	}
	return growing, table.Flush()
}
