package rollout

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// diff returns the subcommand that compares pod templates.
func (c common) diff() *cobra.Command {
	var from, to int64
	command := c.command("diff", "Show the changes of an update in the pod template", `Show the difference between two pod templates: from the newest revision that differs from the template, to the template.
--from and --to choose other revisions by number, as in flotilla rollout history.

Lines begin with + (added), - (removed) or ~ (changed).`,
		func(ctx context.Context, client *workload.Client, s *workload.Set) error {
			revisions, err := client.Revisions(ctx, s)
			if err != nil {
				return err
			}
			older, err := earlier(s, revisions, from)
			if err != nil {
				return err
			}
			next := workload.Plain(s.Template())
			name := "the template"
			if to != 0 {
				newer, err := numbered(s, revisions, to)
				if err != nil {
					return err
				}
				next, name = newer.Template, title(newer)
			}
			fmt.Fprintf(c.streams.Out, "%s/%s from %s to %s:\n", s.Kind.Name, s.Name, title(older), name)
			lines := apply.Diff(&unstructured.Unstructured{Object: older.Template}, &unstructured.Unstructured{Object: next})
			if len(lines) == 0 {
				lines = []string{"no differences"}
			}
			for _, line := range lines {
				fmt.Fprintln(c.streams.Out, "  "+line)
			}
			return nil
		})
	command.Flags().Int64Var(&from, "from", 0, "number of the first revision; 0 means the newest one that differs from the template")
	command.Flags().Int64Var(&to, "to", 0, "number of the second revision; 0 means the template")
	return command
}

func title(r *workload.Revision) string { return fmt.Sprintf("revision %d (%s)", r.Number, r.Name) }

// earlier finds the revision with the number; 0 means the newest with a template that is not the present one.
func earlier(s *workload.Set, revisions []*workload.Revision, number int64) (*workload.Revision, error) {
	if number != 0 {
		return numbered(s, revisions, number)
	}
	for _, r := range slices.Backward(revisions) {
		if !workload.SameTemplate(r.Template, s.Template()) {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%s has no other revision", s)
}
