package main

import (
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/drain"
	"github.com/flotilla-project/flotilla/kustomize/explain"
	"github.com/flotilla-project/flotilla/kustomize/health"
	"github.com/flotilla-project/flotilla/kustomize/images"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/rollout"
	"github.com/flotilla-project/flotilla/kustomize/simulate"
	"github.com/flotilla-project/flotilla/kustomize/takeover"
)

// newRoot returns the command with all subcommands. It is called as the process was.
func newRoot(program string, streams genericiooptions.IOStreams) *cobra.Command {
	quieten(streams.ErrOut)
	flags := genericclioptions.NewConfigFlags(true)
	root := &cobra.Command{
		Use:   "flotilla",
		Short: "Install, watch and remove Flotilla's operators",
		Long: `Install, watch and remove the operators of Flotilla. Each feature has its own operator, CRDs and webhooks.

Exit codes: 0 done, 1 failed, 2 wrong command line, 3 checked with a negative result (unhealthy, incomplete, different),
130 interrupted.`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	if name := strings.TrimSuffix(filepath.Base(program), ".exe"); strings.HasPrefix(name, "kubectl-") {
		// Help and completion show the command as users type it.
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl flotilla"}
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	flags.AddFlags(root.PersistentFlags())
	level := root.PersistentFlags().IntP("v", "v", 0, "level of the log: 6 shows each request to the API server, 8 their bodies")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return logAt(*level, streams.ErrOut) }
	flags.WithWrapConfigFn(func(config *rest.Config) *rest.Config { return cli.Interruptible(root.Context(), config) })
	for _, newCommand := range commands() {
		root.AddCommand(newCommand(flags, streams))
	}
	root.SetHelpCommand(help())
	return root
}

// help prints the help of a command. For an unknown command, cobra's own would print the help of the root, and succeed.
func help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Print the help of a command",
		RunE: func(command *cobra.Command, args []string) error {
			found, left, err := command.Root().Find(args)
			if err != nil || len(left) > 0 {
				return cli.MisuseErrorf("unknown command %q", strings.Join(args, " "))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// quieten hides the log of libraries from users: the command prints each error once. Warnings of the API server are for
// users.
func quieten(out io.Writer) {
	klog.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NewWarningWriter(out, rest.WarningWriterOptions{Deduplicate: true}))
}

// logAt shows the log of libraries up to a level, such as the requests to the API server.
func logAt(level int, out io.Writer) error {
	if level <= 0 {
		return nil
	}
	set := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(set)
	if err := set.Set("v", strconv.Itoa(level)); err != nil {
		return fmt.Errorf("set the level of the log: %w", err)
	}
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(level), textlogger.Output(out))))
	return nil
}

// commands returns the subcommands; a new one is a package and a line here.
func commands() []func(genericclioptions.RESTClientGetter, genericiooptions.IOStreams) *cobra.Command {
	return []func(genericclioptions.RESTClientGetter, genericiooptions.IOStreams) *cobra.Command{
		drain.NewCommand,
		explain.NewCommand,
		health.NewDoctorCommand,
		health.NewStatusCommand,
		health.NewVersionsCommand,
		images.NewCommand,
		install.NewCommand,
		install.NewUninstallCommand,
		rollout.NewCommand,
		simulate.NewCommand,
		takeover.NewCommand,
		version,
	}
}
