package explain

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/rollout"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// NewCommand returns flotilla explain.
func NewCommand(flags genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) *cobra.Command {
	var output cli.Output
	command := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Show why a workload waits, and how to fix it",
		Long: `Show why a CloneSet, StatefulSet or DaemonSet of apps.kruise.io waits, and how to fix it. The causes come from its
conditions, pods and events, and from quotas, budgets and nodes. The command only reads.`,
		Args:              cli.Arguments(workload.Arguments),
		ValidArgsFunction: workload.Complete(flags),
		RunE: func(command *cobra.Command, args []string) error {
			named, err := workload.Parse(args)
			if err != nil {
				return err
			}
			client, err := workload.Connect(flags)
			if err != nil {
				return err
			}
			world, err := look(command.Context(), client, named, clock.RealClock{}.Now())
			if err != nil {
				return err
			}
			return write(streams.Out, Explain(world), output)
		},
	}
	output.AddTo(command.Flags())
	return command
}

func write(out io.Writer, e Explanation, output cli.Output) error {
	if output != "" {
		return output.Print(out, e)
	}
	fmt.Fprintf(out, "%s %s in namespace %s is %s: %s\n", e.Kind, e.Name, e.Namespace, e.Phase, sentence(e.Message))
	for _, f := range e.Findings {
		fmt.Fprintf(out, "\n- %s\n", f.Why)
		if f.Help != "" {
			fmt.Fprintf(out, "  %s\n", f.Help)
		}
	}
	switch {
	case len(e.Findings) > 0:
	case e.Phase == rollout.Complete:
		fmt.Fprint(out, "\nNo problem found.\n")
	default:
		fmt.Fprint(out, "\nNo problem found; the rollout is still in progress.\n")
	}
	for _, what := range e.Unread {
		fmt.Fprintf(out, "\nNot checked: %s\n", what)
	}
	return nil
}
