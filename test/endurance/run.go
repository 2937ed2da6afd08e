package endurance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flotilla-project/flotilla/test/records"
)

const (
	// samplePeriod is the time between two samples, and told how many of them there are between two lines of progress.
	samplePeriod = 15 * time.Second
	told         = 20
)

// Options say how much work there is.
type Options struct {
	// Duration is how long the operators work.
	Duration time.Duration
	// Nodes is the number of simulated nodes.
	Nodes int
	// Places is how many lives of each kind there are at a time.
	Places int
	// Pause is the mean time between two edits of a life.
	Pause time.Duration
	// Seed chooses the work.
	Seed uint64
	// Out receives the progress.
	Out io.Writer
}

// Record is one run, as its file has it.
type Record struct {
	// Commit is the commit that ran, with the suffix -dirty if the work tree differed from it.
	Commit string `json:"commit"`
	// Date is when the work began, and Seconds how long it took.
	Date    time.Time `json:"date"`
	Seconds float64   `json:"seconds"`
	// Machine is where it ran.
	Machine records.Machine `json:"machine"`
	// Nodes, Places and Seed are those of Options.
	Nodes  int    `json:"nodes"`
	Places int    `json:"places"`
	Seed   uint64 `json:"seed"`
	// Work is what was done.
	Work *Work `json:"work"`
	// CPU is the time of each operator for the work, in seconds, and Passes the number of its passes.
	CPU, Passes map[string]float64
	// Verdicts are those of all operators.
	Verdicts []Verdict `json:"verdicts"`
}

// Broken returns an error if a figure grows, if work failed, or if no work with a kind was completed.
func (r Record) Broken() error {
	growing := 0
	for _, v := range r.Verdicts {
		if v.Grows() {
			growing++
		}
	}
	var idle []string
	for _, kind := range Kinds() {
		if r.Work.Lives[kind.Name] == 0 {
			idle = append(idle, kind.Name)
		}
	}
	if growing > 0 || r.Work.Failed > 0 || len(idle) > 0 {
		return fmt.Errorf("commit %s: %d of %d figures grow, %d lives failed, and kinds without a complete life are: [%s]",
			r.Commit, growing, len(r.Verdicts), r.Work.Failed, strings.Join(idle, ", "))
	}
	return nil
}

// Run lets the operators of all features work.
func Run(ctx context.Context, root string, o Options) (r Record, err error) {
	if r.Commit, err = records.Commit(ctx, root); err != nil {
		return r, err
	}
	w, err := begin(ctx, o)
	if err != nil {
		return r, err
	}
	defer func() {
		if err != nil {
			err = w.fail(err)
		} else {
			err = w.end()
		}
	}()
	r.Machine = records.ThisMachine()
	r.Nodes, r.Places, r.Seed = o.Nodes, o.Places, o.Seed
	r.Work = &Work{Lives: map[string]int{}}
	r.Date = time.Now().UTC().Truncate(time.Second)
	samples, err := w.work(ctx, o, r.Work)
	if err != nil {
		return r, err
	}
	r.Seconds = o.Duration.Seconds()
	r.CPU, r.Passes = map[string]float64{}, map[string]float64{}
	for _, operator := range slices.Sorted(maps.Keys(samples)) {
		verdicts, err := Judge(operator, samples[operator], o.Duration)
		if err != nil {
			return r, err
		}
		r.Verdicts = append(r.Verdicts, verdicts...)
		first, last := samples[operator][0], samples[operator][len(samples[operator])-1]
		r.CPU[operator], r.Passes[operator] = last.CPU-first.CPU, last.Passes-first.Passes
	}
	return r, nil
}

// work makes lives in all places, and returns the samples of each operator, by feature.
func (w *world) work(ctx context.Context, o Options, work *Work) (map[string][]Sample, error) {
	working, stop := context.WithTimeout(ctx, o.Duration)
	defer stop()
	var places sync.WaitGroup
	defer places.Wait()
	for i, kind := range Kinds() {
		for j := range o.Places {
			p := place{
				Kind:   kind,
				client: w.client,
				random: rand.New(rand.NewPCG(o.Seed, uint64(i*o.Places+j))), //nolint:gosec // work that can be repeated
				pause:  o.Pause,
				work:   work,
			}
			places.Go(func() { p.live(working) })
		}
	}
	samples, err := w.watch(working, o)
	if err != nil {
		stop()
	}
	return samples, errors.Join(err, ctx.Err())
}

// watch takes samples until ctx ends.
func (w *world) watch(ctx context.Context, o Options) (map[string][]Sample, error) {
	samples := map[string][]Sample{}
	began := time.Now()
	ticker := time.NewTicker(samplePeriod)
	defer ticker.Stop()
	for n := 0; ; n++ {
		for feature, m := range w.managers {
			s, err := sample(ctx, m.Metrics)
			if ctx.Err() != nil {
				return samples, nil
			}
			if err != nil {
				return nil, fmt.Errorf("look at the manager of %s: %w", feature, err)
			}
			s.At = time.Since(began)
			samples[feature] = append(samples[feature], s)
			if n%told == 0 {
				fmt.Fprintf(o.Out, "%s %s: %.0f MiB, heap %.1f MiB, %.0f goroutines, %.0f files, %.0f series, %.0f queued, %.1f s CPU, %.0f passes\n",
					s.At.Truncate(time.Second), feature, s.MemoryMiB, s.HeapMiB, s.Goroutines, s.Files, s.Series, s.Queued, s.CPU, s.Passes)
			}
		}
		select {
		case <-ctx.Done():
			return samples, nil
		case <-ticker.C:
		}
	}
}
