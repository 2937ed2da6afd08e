package rollout

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// entry is one line of the history, and its form in the output for programs.
type entry struct {
	Revision int64    `json:"revision"`
	Name     string   `json:"name"`
	Pods     int      `json:"pods"`
	Images   []string `json:"images"`
	Cause    string   `json:"cause,omitempty"`
	// Role is update for the revision that pods go to, current for the one that they come from, else empty.
	Role string `json:"role,omitempty"`
}

func (c common) history() *cobra.Command {
	var number int64
	var output cli.Output
	command := c.command("history", "List the revisions of a workload, or show one of them", `List the revisions of a workload with their pods, or show the pod template of one revision with --revision.

CAUSE is annotation kubernetes.io/change-cause of the pod template. For a DaemonSet it is also the annotation that the object
had when its template was changed.`,
		func(ctx context.Context, client *workload.Client, s *workload.Set) error {
			revisions, err := client.Revisions(ctx, s)
			if err != nil {
				return err
			}
			if number != 0 {
				r, err := numbered(s, revisions, number)
				if err != nil {
					return err
				}
				return printTemplate(c.streams.Out, r, output)
			}
			pods, err := client.Pods(ctx, s)
			if err != nil {
				return err
			}
			return printHistory(c.streams.Out, entries(s, revisions, pods), output)
		})
	command.Flags().Int64Var(&number, "revision", 0, "number of the revision to show; 0 lists all")
	output.AddTo(command.Flags())
	return command
}

// entries joins revisions with the pods that have them.
func entries(s *workload.Set, revisions []*workload.Revision, pods []*corev1.Pod) []entry {
	list := make([]entry, 0, len(revisions))
	for _, r := range revisions {
		e := entry{
			Revision: r.Number,
			Name:     r.Name,
			Images:   r.Images(),
			Cause:    r.Cause(),
		}
		for _, pod := range pods {
			if workload.SameRevision(workload.RevisionOf(pod), r.Name) {
				e.Pods++
			}
		}
		switch {
		case s.IsUpdated(r.Name):
			e.Role = "update"
		case workload.SameRevision(r.Name, s.CurrentRevision):
			e.Role = "current"
		}
		list = append(list, e)
	}
	return list
}

func printHistory(out io.Writer, list []entry, output cli.Output) error {
	if output != "" {
		return output.Print(out, list)
	}
	table := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "REVISION\tNAME\tROLE\tPODS\tIMAGES\tCAUSE")
	for _, e := range list {
		fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%s\t%s\n", e.Revision, e.Name, cmp.Or(e.Role, "-"), e.Pods,
			strings.Join(e.Images, ","), cmp.Or(e.Cause, "-"))
	}
	return table.Flush()
}

func printTemplate(out io.Writer, r *workload.Revision, output cli.Output) error {
	if output != "" {
		return output.Print(out, r.Template)
	}
	text, err := yaml.Marshal(r.Template)
	if err != nil {
		return fmt.Errorf("print revision %s: %w", r.Name, err)
	}
	fmt.Fprintf(out, "# revision %d (%s)\n%s", r.Number, r.Name, text)
	return nil
}
