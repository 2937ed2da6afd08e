// Command gate measures operators under load and fails if one exceeds a bound of test/scale/bounds.yaml:
//
//	gate                       every feature, 1000 pods, five rounds
//	gate --feature cloneset --pods 200 --rounds 2
//	gate judge FILE            judges a record again
//	gate publish               writes the table and the text of the picture of docs/performance/run.json
//
// It writes the record of the run into bin/bench.
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

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/test/scale"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out, progress io.Writer) error {
	o := scale.Options{Nodes: scale.DefaultNodes, Progress: progress}
	flags := pflag.NewFlagSet("gate", pflag.ContinueOnError)
	root := flags.String("root", ".", "the folder of the repository")
	chosen := flags.StringSlice("feature", scale.Features(), "whose operators to measure")
	flags.IntVar(&o.Pods, "pods", scale.DefaultPods, "how many pods each load has; relative bounds are of the default")
	flags.IntVar(&o.Rounds, "rounds", scale.GateRounds, "how often to measure")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	bounds, err := scale.BoundsOfRecord()
	if err != nil {
		return err
	}
	switch rest := flags.Args(); {
	case len(rest) == 2 && rest[0] == "judge":
		record, err := scale.ReadRecord(rest[1])
		if err != nil {
			return err
		}
		return judge(bounds, record, out)
	case len(rest) == 1 && rest[0] == "publish":
		return scale.Publish(*root)
	case len(rest) > 0:
		return fmt.Errorf("%q: the commands are `judge FILE` and `publish`", strings.Join(rest, " "))
	}
	log.SetLogger(logr.Discard()) // warnings of the API server about loads
	record, err := scale.Measure(ctx, *root, *chosen, o)
	if len(record.Features) == 0 {
		return err
	}
	if o.Pods != scale.DefaultPods {
		fmt.Fprintf(out, "relative bounds are of %d pods: with %d, exact ones are judged only\n", scale.DefaultPods, o.Pods)
	}
	file, written := record.Write(filepath.Join(*root, "bin", "bench"))
	if err := errors.Join(err, written); err != nil {
		return err
	}
	fmt.Fprintln(out, "record:", file)
	return judge(bounds, record, out)
}

func judge(bounds scale.Bounds, record scale.Record, out io.Writer) error {
	verdicts, err := bounds.Judge(record)
	if err != nil {
		return fmt.Errorf("judge commit %s: %w", record.Commit, err)
	}
	broken, err := scale.PrintVerdicts(out, verdicts)
	if err != nil {
		return err
	}
	if broken > 0 {
		return fmt.Errorf("commit %s breaks %d of %d bounds", record.Commit, broken, len(verdicts))
	}
	fmt.Fprintf(out, "commit %s keeps %d bounds\n", record.Commit, len(verdicts))
	return nil
}
