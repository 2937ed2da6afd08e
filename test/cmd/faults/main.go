// Command faults breaks parts of a local cluster during rollouts of all features, and judges what a watcher sees:
//
//	faults                     every fault, on a cluster of three nodes that it starts and takes down
//	faults --fault etcd        one fault
//	faults --cluster NAME      on a cluster that runs
//	faults publish             writes the table of docs/reliability/run.json
//
// It writes the record of the run into bin/faults, and what is left of a fault that broke an invariant into a folder there.
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

	"github.com/flotilla-project/flotilla/test/cluster"
	"github.com/flotilla-project/flotilla/test/faults"
	"github.com/flotilla-project/flotilla/test/records"
)

// ownCluster is the name of the cluster that the command starts.
const ownCluster = "flotilla-faults"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) (err error) {
	flags := pflag.NewFlagSet("faults", pflag.ContinueOnError)
	root := flags.String("root", ".", "the folder of the repository")
	names := flags.StringSlice("fault", nil, "which faults to inject; default: all")
	name := flags.String("cluster", "", "the running cluster to use, with three nodes; default: one of its own")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if rest := flags.Args(); len(rest) == 1 && rest[0] == "publish" {
		return faults.Publish(*root)
	} else if len(rest) > 0 {
		return fmt.Errorf("%q: the command is `publish`", strings.Join(rest, " "))
	}
	chosen, err := faults.Choose(*names)
	if err != nil {
		return err
	}
	log.SetLogger(logr.Discard()) // warnings of the API server about workloads
	if *name == "" {
		*name = ownCluster
		defer func() {
			err = errors.Join(err, cluster.Remove(context.WithoutCancel(ctx), cluster.Options{Name: ownCluster}))
		}()
	}
	c, err := cluster.Start(ctx, cluster.Options{
		Name:  *name,
		Nodes: faults.Nodes,
		Out:   out,
	})
	if err != nil {
		return fmt.Errorf("start the cluster: %w", err)
	}
	stage, err := faults.NewStage(ctx, c, out)
	if err != nil {
		return fmt.Errorf("install all features: %w", err)
	}
	folder := filepath.Join(*root, "bin", "faults")
	record, err := stage.RunAll(ctx, *root, chosen, folder)
	if len(record.Verdicts) == 0 {
		return err
	}
	file, written := records.Write(folder, record.Date, record.Commit, record)
	fmt.Fprintln(out, "record:", file)
	return errors.Join(err, written, record.Broken())
}
