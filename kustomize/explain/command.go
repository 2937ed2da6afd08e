package explain

import (
	"encoding/json"
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
	var output string
	command := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Tell why a workload waits, and what would help",
		Long: `Tell why a CloneSet, StatefulSet or DaemonSet of apps.kruise.io waits, and what would help, from its conditions, its
pods, their events and the objects in the way. It only reads.`,
		Args:              cli.Arguments(workload.Arguments),
		ValidArgsFunction: workload.Complete(flags),
		RunE: func(command *cobra.Command, args []string) error {
			if output != "" && output != "json" {
				return cli.MisuseErrorf("-o %s: there is json, and without it text", output)
			}
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
	command.Flags().StringVarP(&output, "output", "o", "", "json: print JSON")
	return command
}

func write(out io.Writer, e Explanation, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(e); err != nil {
			return fmt.Errorf("print JSON: %w", err)
		}
		return nil
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
		fmt.Fprint(out, "\nNothing is in its way.\n")
	default:
		fmt.Fprint(out, "\nNothing that can be seen is in its way: it goes on by itself.\n")
	}
	for _, what := range e.Unread {
		fmt.Fprintf(out, "\nNot looked at: %s\n", what)
	}
	return nil
}
