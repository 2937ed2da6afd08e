// Command endurance lets the operators of all features work at random on a simulated cluster of its own, and judges whether
// their memory, goroutines, queues and metrics stay as they are:
//
//	endurance                  two hours
//	endurance --duration 30m --seed 7
//
// It writes the record of the run into bin/endurance, and fails if a figure grows or work is left undone.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/test/endurance"
	"github.com/flotilla-project/flotilla/test/records"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "endurance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	o := endurance.Options{Out: out}
	flags := pflag.NewFlagSet("endurance", pflag.ContinueOnError)
	root := flags.String("root", ".", "the folder of the repository")
	flags.DurationVar(&o.Duration, "duration", 2*time.Hour, "how long the operators work")
	flags.IntVar(&o.Nodes, "nodes", 20, "how many simulated nodes")
	flags.IntVar(&o.Places, "places", 3, "how many namespaces of each kind of work at a time")
	flags.DurationVar(&o.Pause, "pause", 15*time.Second, "the mean time between two edits of a namespace")
	flags.Uint64Var(&o.Seed, "seed", 1, "chooses the work")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if rest := flags.Args(); len(rest) > 0 {
		return fmt.Errorf("%q: there are only flags", strings.Join(rest, " "))
	}
	log.SetLogger(logr.Discard()) // warnings of the API server about the work
	record, err := endurance.Run(ctx, *root, o)
	if err != nil {
		return err
	}
	file, err := records.Write(filepath.Join(*root, "bin", "endurance"), record.Date, record.Commit, record)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "record:", file)
	if _, err := endurance.Print(out, record.Verdicts); err != nil {
		return err
	}
	for _, failure := range record.Work.Failures {
		fmt.Fprintln(out, "failed:", failure)
	}
	return record.Broken()
}
