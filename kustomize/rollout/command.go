package rollout

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// NewCommand returns flotilla rollout with its subcommands.
func NewCommand(flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	rollout := &cobra.Command{
		Use:   "rollout",
		Short: "Watch, pause, undo and restart rollouts of CloneSets, StatefulSets and DaemonSets",
		Long: `Watch, pause, undo and restart rollouts of CloneSets, StatefulSets and DaemonSets of apps.kruise.io.

Name a workload as KIND/NAME or KIND NAME. Short names of the kinds are clone, asts and ads.`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	c := common{flags: flags, streams: streams, clock: clock.RealClock{}}
	rollout.AddCommand(
		c.status(), c.watch(), c.pause(), c.resume(), c.undo(), c.history(), c.diff(), c.restart(),
	)
	return rollout
}

// common has the parts that all subcommands share.
type common struct {
	flags   genericclioptions.RESTClientGetter
	streams genericiooptions.IOStreams
	clock   clock.WithTicker
}

// run is a subcommand for the workload that its arguments name.
type run func(ctx context.Context, client *workload.Client, s *workload.Set) error

// command returns a subcommand that reads the workload before it runs.
func (c common) command(verb, short, long string, run run) *cobra.Command {
	return &cobra.Command{
		Use:               verb + " KIND/NAME",
		Short:             short,
		Long:              long,
		Args:              cli.Arguments(workload.Arguments),
		ValidArgsFunction: workload.Complete(c.flags),
		RunE: func(command *cobra.Command, args []string) error {
			named, err := workload.Parse(args)
			if err != nil {
				return err
			}
			client, err := workload.Connect(c.flags)
			if err != nil {
				return err
			}
			s, err := client.Get(command.Context(), named)
			if err != nil {
				return err
			}
			return run(command.Context(), client, s)
		},
	}
}
