package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/flotilla-project/flotilla/test/scale"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out, progress io.Writer) error {
	o := scale.Options{Progress: progress}
	flags := pflag.NewFlagSet("scale", pflag.ContinueOnError)
	flags.StringVar(&o.Feature, "feature", "cloneset", "whose operator to measure: "+strings.Join(scale.Features(), " or "))
	list := flags.Bool("list", false, "print whose operators can be measured, and end")
	flags.IntVar(&o.Pods, "pods", scale.DefaultPods, "how many pods")
	flags.IntVar(&o.Nodes, "nodes", scale.DefaultNodes, "how many simulated nodes; as many as pods where every node runs one")
	flags.IntVar(&o.Foreign, "foreign", 0, "how many pods of others are in the cluster before")
	flags.IntVar(&o.Sets, "restart", 0, "measure this in place of loads: a restart among so many sets of --pods pods each")
	flags.DurationVar(&o.StartDelay, "start-delay", 0, "how long containers take to start")
	flags.IntVar(&o.Rounds, "rounds", 1, "how often to measure")
	flags.StringSliceVar(&o.Only, "only", nil, "measure these alone: idle, floor, ready, dead, built-in, the feature; of jobs broadcast, pull, cron; of budget and spread many")
	flags.StringVar(&o.PprofAddress, "pprof-addr", "", "where the operator serves profiles; default: nowhere")
	flags.StringVar(&o.OperatorLog, "operator-log", "", "file for the operator's log; default: discarded")
	asJSON := flags.Bool("json", false, "print JSON instead of a table")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *list {
		fmt.Fprintln(out, strings.Join(scale.Features(), "\n"))
		return nil
	}
	measure := scale.Run
	if o.Sets > 0 {
		measure = scale.Restart
	}
	rows, err := measure(ctx, o)
	show := scale.Print
	if *asJSON {
		show = printJSON
	}
	return errors.Join(err, show(out, rows)) // what was measured before an error counts
}

func printJSON(out io.Writer, rows []scale.Row) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(rows)
}
