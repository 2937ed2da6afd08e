// Command cluster runs a real Kubernetes on this machine.
//
//	go run ./test/cluster/cmd/cluster up
//
// See the usage text below for its commands, and package cluster for how it works.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/flotilla-project/flotilla/core/testing/simnodes"

	"github.com/flotilla-project/flotilla/test/cluster"
)

const usage = `A real Kubernetes cluster on this machine.

Usage: cluster COMMAND [FLAGS]

  up                    start the cluster, and build what is missing; harmless if it runs
  down                  end it and remove every trace but the built binaries
  status                what runs, and how much memory it uses
  kubectl ARGS...       kubectl as administrator
  kubeconfig            print the path of the administrator's kubeconfig
  registry              print the address to which images for its nodes are pushed
  logs [PROCESS]        list the logs, or print one; -f goes on printing
  node stop|start NAME  crash a node, or boot it again
  build                 build what is missing; --only envtest: just etcd,
                        kube-apiserver and kubectl
  env                   print the variable that shows envtest these three
  check                 whether real nodes can run here, and if not, why

Flags:
`

func main() {
	ctx := context.Background()
	if played, err := cluster.PlayRole(ctx, os.Args, simnodes.Run); played {
		exit(err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	exit(err)
}

func exit(err error) {
	if code, ok := errors.AsType[exitError](err); ok {
		os.Exit(int(code))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// exitError is the exit code of another program, which has printed its error itself.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// command is one run of this program.
type command struct {
	options     cluster.Options
	only        string
	follow      bool
	args        []string
	out, errOut io.Writer
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	c := command{out: out, errOut: errOut}
	flags := c.flags()
	if len(args) == 0 {
		fmt.Fprint(errOut, usage, flags.FlagUsages())
		return exitError(2)
	}
	verb := args[0]
	if verb == "help" || verb == "-h" || verb == "--help" {
		args = []string{"help", "--help"}
	}
	if verb == "kubectl" { // all flags after its first argument are its own
		flags.SetInterspersed(false)
	}
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			fmt.Fprint(out, usage, flags.FlagUsages())
			return nil
		}
		return err
	}
	c.args = flags.Args()
	c.options.Out = errOut
	if flags.Changed("nodes") && c.options.Nodes == 0 {
		c.options.Nodes = cluster.NoNodes
	}
	do, known := map[string]func(context.Context) error{
		"up": c.up, "down": c.down, "status": c.status, "kubectl": c.kubectl, "kubeconfig": c.kubeconfig,
		"registry": c.registry, "logs": c.logs, "node": c.node, "build": c.build, "env": c.env, "check": c.check,
	}[verb]
	if !known {
		fmt.Fprint(errOut, usage, flags.FlagUsages())
		return fmt.Errorf("unknown command %q", verb)
	}
	return do(ctx)
}

func (c *command) flags() *pflag.FlagSet {
	flags := pflag.NewFlagSet("cluster", pflag.ContinueOnError)
	flags.Usage = func() {}
	flags.StringVar(&c.options.Name, "name", cluster.DefaultName, "which cluster; several can run side by side")
	flags.StringVar(&c.options.Kubernetes, "kubernetes", "", "Kubernetes release (default $"+cluster.KubernetesVariable+", else "+cluster.DefaultKubernetes+")")
	flags.IntVar(&c.options.Nodes, "nodes", 0, fmt.Sprintf("number of nodes (default %d)", cluster.DefaultNodes))
	flags.StringVar(&c.options.Cache, "cache", "", "folder of binaries and state (default $"+cluster.CacheVariable+
		", else flotilla in the user's cache folder)")
	flags.IntVar(&c.options.APIPort, "api-port", 0, "port on 127.0.0.1 of the API server (default 7443, or a free one)")
	flags.IntVar(&c.options.RegistryPort, "registry-port", 0, "port on 127.0.0.1 of the registry (default 7500, or a free one)")
	flags.IntSliceVar(&c.options.HostPorts, "host-ports", nil,
		"ports on the API server's loopback that lead to this machine's, for webhooks of plain processes")
	flags.BoolVar(&c.options.Simulated, "simulated", false,
		"control plane only, as plain processes, with simulated nodes: needs neither root nor Linux")
	flags.BoolVar(&c.options.BuildRunc, "build-runc", false,
		"build runc, without seccomp, even where the machine has one")
	flags.StringVar(&c.only, "only", "", "with build: envtest")
	flags.BoolVarP(&c.follow, "follow", "f", false, "with logs: go on printing")
	return flags
}
