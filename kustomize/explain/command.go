package explain

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/progress"
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
			now := clock.RealClock{}.Now()
			world, err := look(command.Context(), client, named, now)
			if err != nil {
				return err
			}
			e := Explain(world)
			if e.Phase == progress.Progressing {
				e.ToGo = remaining(command.Context(), client, named, now)
			}
			return write(streams.Out, e, output)
		},
	}
	output.AddTo(command.Flags())
	return command
}

// longestPlay limits the time for a forecast: a large rollout is explained without the time that is left.
const longestPlay = 3 * time.Second

// remaining describes the time that the rollout still takes by its forecast. It is empty if the rollout has another pace.
func remaining(ctx context.Context, client *workload.Client, named workload.Named, now time.Time) string {
	ctx, stop := context.WithTimeout(ctx, longestPlay)
	defer stop()
	scene, err := forecast.Read(ctx, client, named, nil, now)
	if err != nil {
		return ""
	}
	return toGo(ctx, scene)
}

// toGo is remaining for a scene. It is empty if the context ends before the forecast is there.
func toGo(ctx context.Context, scene *forecast.Scene) string {
	report, err := forecast.Play(ctx, scene, forecast.Edit{})
	if err != nil {
		return ""
	}
	if left, known := forecast.Remaining(scene, report); known {
		return forecast.ToGo(left)
	}
	return ""
}

func write(out io.Writer, e Explanation, output cli.Output) error {
	if output != "" {
		return output.Print(out, e)
	}
	message := e.Message
	if e.ToGo != "" {
		message += ", " + e.ToGo
	}
	fmt.Fprintf(out, "%s %s in namespace %s is %s: %s\n", e.Kind, e.Name, e.Namespace, e.Phase, sentence(message))
	for _, f := range e.Findings {
		fmt.Fprintf(out, "\n- %s\n", f.Why)
		if f.Help != "" {
			fmt.Fprintf(out, "  %s\n", f.Help)
		}
	}
	switch {
	case len(e.Findings) > 0:
	case e.Phase == progress.Complete:
		fmt.Fprint(out, "\nNo problem found.\n")
	default:
		fmt.Fprint(out, "\nNo problem found; the rollout is still in progress.\n")
	}
	for _, what := range e.Unread {
		fmt.Fprintf(out, "\nNot checked: %s\n", what)
	}
	return nil
}
