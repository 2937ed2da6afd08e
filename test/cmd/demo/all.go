package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
)

// everything is the name of the demo of all features, one after the other on one cluster.
const everything = "all"

// showAll installs every feature and runs the demos one after the other. The first one that fails ends it.
func showAll(ctx context.Context, d *demo) error {
	if len(d.nodes) < 2 {
		return errors.New("budgets and zones need another node: start two, or more")
	}
	features, err := catalog.Features()
	if err != nil {
		return fmt.Errorf("list the features: %w", err)
	}
	for _, feature := range features {
		if err := d.operator(ctx, feature.Name); err != nil {
			return err
		}
	}
	d.within = true
	turns := slices.DeleteFunc(names(), func(name string) bool { return name == everything })
	results := inTurn(turns, time.Now, func(name string) error {
		d.title("Now " + name)
		d.logs = d.logsOf(name)
		return d.show(ctx, name)
	})
	d.title("All features on one cluster")
	fmt.Print(d.ink.summary(results))
	if err := failure(results); err != nil {
		return err
	}
	d.within, d.kind = false, ""
	d.tryNext("kubectl -n flotilla-system get pods                      # managers and agents")
	return nil
}

// result is how the demo of a feature ended.
type result struct {
	name  string
	took  time.Duration
	err   error
	begun bool
}

// inTurn runs demos until one fails. Those that were not begun have a result, too.
func inTurn(names []string, now func() time.Time, run func(name string) error) []result {
	var results []result
	failed := false
	for _, name := range names {
		r := result{name: name}
		if !failed {
			started := now()
			r.begun, r.err = true, run(name)
			r.took = now().Sub(started)
			failed = r.err != nil
		}
		results = append(results, r)
	}
	return results
}

// failure returns the error of the demo that failed, if one did.
func failure(results []result) error {
	for _, r := range results {
		if r.err != nil {
			return fmt.Errorf("demo of %s: %w", r.name, r.err)
		}
	}
	return nil
}

// summary shows a line for each demo: green for what was shown, red for what failed.
func (i ink) summary(results []result) string {
	var b strings.Builder
	for _, r := range results {
		took := fmt.Sprintf("%3.0f s", r.took.Seconds())
		switch {
		case !r.begun:
			b.WriteString(i.dim(fmt.Sprintf("- %-12s not shown", r.name)))
		case r.err != nil:
			b.WriteString(i.red(fmt.Sprintf("✗ %-12s %s  failed", r.name, took)))
		default:
			b.WriteString(i.green(fmt.Sprintf("✓ %-12s %s", r.name, took)))
		}
		b.WriteString("\n")
	}
	return b.String()
}
