// Command deflake runs the tests of modules many times, in random orders, and lists those that failed at least once.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/flotilla-project/flotilla/test/results"
)

// perProcess is how many times a process runs its tests, all in one order. What one run leaves behind the next one meets.
const perProcess = 5

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "deflake:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	d := deflake{out: out, failures: map[string]*failure{}}
	flags := pflag.NewFlagSet("deflake", pflag.ContinueOnError)
	flags.IntVar(&d.times, "times", 20, "how often each test runs")
	flags.Int64Var(&d.seed, "seed", time.Now().Unix(), "the order of the first round; each further round has the next one")
	flags.StringVar(&d.folder, "folder", "bin/deflake", "where the logs of failures are kept")
	load := flags.Int("load", 0, "how many busy processes share the cores")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if err := os.MkdirAll(d.folder, 0o755); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for range *load {
		if err := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done").Start(); err != nil {
			return fmt.Errorf("start a busy process: %w", err)
		}
	}
	for _, module := range flags.Args() {
		if err := d.module(ctx, module); err != nil {
			return err
		}
	}
	return d.table()
}

// deflake is the tests that failed.
type deflake struct {
	times    int
	seed     int64
	folder   string
	out      io.Writer
	failures map[string]*failure
	order    []string // the keys of failures, as they came
}

// failure is a test that failed at least once.
type failure struct {
	module, test string
	times        int
	seeds, logs  []string
}

// module runs the tests of a module.
func (d *deflake) module(ctx context.Context, module string) error {
	begin, seed := time.Now(), d.seed
	var sum results.Summary
	for left := d.times; left > 0; left -= perProcess {
		test := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", module, "test", //nolint:gosec // a module of the workspace
			fmt.Sprintf("TESTFLAGS=-json -count=%d -shuffle=%d", min(left, perProcess), seed))
		test.Stderr = io.Discard
		said, err := test.StdoutPipe()
		if err != nil {
			return fmt.Errorf("test %s: %w", module, err)
		}
		if err := test.Start(); err != nil {
			return fmt.Errorf("test %s: %w", module, err)
		}
		var kept error
		err = results.Read(said, func(p results.Package) {
			sum.Add(p)
			kept = errors.Join(kept, d.keep(module, seed, p))
		}, func(string) {})
		_ = test.Wait() // its failures are known by now
		if err := errors.Join(err, kept, ctx.Err()); err != nil {
			return fmt.Errorf("test %s: %w", module, err)
		}
		seed++
	}
	fmt.Fprintf(d.out, "%s: %d times, %d tests passed, %d failed, %d s\n", module, d.times, sum.Passed, sum.Failed, int(time.Since(begin).Seconds()))
	if sum.Passed+sum.Failed == 0 {
		return fmt.Errorf("test %s: no test ran; make -C %s test says why", module, module)
	}
	return nil
}

// keep writes a log for each test of the package that failed.
func (d *deflake) keep(module string, seed int64, p results.Package) error {
	if !p.Failed {
		return nil
	}
	var order strings.Builder
	failed := []results.Test{}
	for _, t := range p.Tests {
		if !strings.Contains(t.Name, "/") {
			fmt.Fprintf(&order, "%s %s\n", t.Result, t.Name)
		}
		if t.Result == "fail" {
			failed = append(failed, t)
		}
	}
	if len(failed) == 0 { // such as a package that left objects behind
		failed = append(failed, results.Test{Package: p.Path, Name: "(package)", Output: p.Output})
	}
	for _, t := range failed {
		key := p.Path + "." + t.Name
		f := d.failures[key]
		if f == nil {
			f = &failure{module: module, test: key}
			d.failures[key] = f
			d.order = append(d.order, key)
		}
		f.times++
		log := filepath.Join(d.folder, fmt.Sprintf("%s-%d-%d.log", strings.ReplaceAll(key, "/", "."), seed, f.times))
		f.seeds = append(f.seeds, fmt.Sprint(seed))
		f.logs = append(f.logs, log)
		text := fmt.Sprintf("-shuffle=%d\n\n%s\nthe tests of the package in the order in which they began:\n%s", seed, t.Output, order.String())
		if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// table prints the tests that failed, and is an error if there are any.
func (d *deflake) table() error {
	if len(d.failures) == 0 {
		return nil
	}
	fmt.Fprintf(d.out, "| module | test | failed | seeds | log |\n|---|---|---|---|---|\n")
	for _, key := range d.order {
		f := d.failures[key]
		fmt.Fprintf(d.out, "| %s | %s | %d of %d | %s | %s |\n", f.module, f.test, f.times, d.times, strings.Join(f.seeds, ", "), f.logs[0])
	}
	return fmt.Errorf("%d tests failed at least once", len(d.failures))
}
