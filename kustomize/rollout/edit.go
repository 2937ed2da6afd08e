package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// restartedAnnotation is the one by which kubectl rollout restart changes a pod template.
const restartedAnnotation = "kubectl.kubernetes.io/restartedAt"

// inPlaceAnnotation restarts containers in place when its value changes: any word, and then the names of containers; none
// names all. The operators read it.
const inPlaceAnnotation = "apps.kruise.io/restart-in-place"

// edit returns a subcommand that makes one edit. The edit says what it did, in words that follow the workload's name; an
// edit without a body has nothing to do.
func (c common) edit(verb, short, long string, make func(context.Context, *workload.Client, *workload.Set) (workload.Patch, string, error)) *cobra.Command {
	var dryRun bool
	command := c.command(verb, short, long, func(ctx context.Context, client *workload.Client, s *workload.Set) error {
		patch, done, err := make(ctx, client, s)
		if err != nil {
			return err
		}
		if patch.Body != nil {
			if err := client.Edit(ctx, s, patch, dryRun); err != nil {
				return err
			}
		}
		if dryRun {
			done += " (dry run: nothing was changed)"
		}
		fmt.Fprintf(c.streams.Out, "%s/%s %s\n", s.Kind.Name, s.Name, done)
		return nil
	})
	command.Flags().BoolVar(&dryRun, "dry-run", false, "let the server judge the edit, and change nothing")
	return command
}

func (c common) pause() *cobra.Command {
	return c.edit("pause", "Stop the update of pods", `Stop the update of pods. Scaling goes on, and pods in the middle of an update finish it.`,
		func(_ context.Context, _ *workload.Client, s *workload.Set) (workload.Patch, string, error) {
			switch {
			case s.OnDelete:
				return workload.Patch{}, "", fmt.Errorf("%s updates no pod by itself: its strategy is OnDelete", s)
			case s.Paused:
				return workload.Patch{}, "is paused already", nil
			}
			patch, err := s.Pause()
			return patch, "paused", err
		})
}

func (c common) resume() *cobra.Command {
	return c.edit("resume", "Let a paused update go on", "",
		func(_ context.Context, _ *workload.Client, s *workload.Set) (workload.Patch, string, error) {
			if !s.Paused {
				return workload.Patch{}, "is not paused", nil
			}
			patch, err := s.Resume()
			return patch, "resumed", err
		})
}

func (c common) restart() *cobra.Command {
	var containers []string
	command := c.edit("restart", "Restart all pods, in place where their policy says so", `Restart all pods, within maxUnavailable and partition.

Pods are replaced by new ones: the template gets annotation `+restartedAnnotation+`, as with
kubectl. Where pods are updated in place their containers are restarted in place instead, all or those of --container,
by annotation `+inPlaceAnnotation+` of the template and the node agent: the same pods, IPs and volumes.`,
		func(_ context.Context, _ *workload.Client, s *workload.Set) (workload.Patch, string, error) {
			if s.Paused {
				return workload.Patch{}, "", fmt.Errorf("%s is paused: resume it first with flotilla rollout resume %s", s, s)
			}
			now := c.clock.Now().UTC().Format(time.RFC3339)
			if !s.InPlace() {
				if len(containers) > 0 {
					return workload.Patch{}, "", cli.MisuseErrorf("%s replaces its pods: single containers are restarted where pods are updated in place", s)
				}
				patch, err := s.Annotate(restartedAnnotation, now)
				return patch, "restarted", err
			}
			for _, name := range containers {
				if !slices.Contains(s.Containers(), name) {
					return workload.Patch{}, "", cli.MisuseErrorf("%s has no container %s; it has %s", s, name, strings.Join(s.Containers(), ", "))
				}
			}
			patch, err := s.Annotate(inPlaceAnnotation, strings.Join(append([]string{now}, containers...), " "))
			return patch, "restarts in place", err
		})
	command.Flags().StringArrayVarP(&containers, "container", "c", nil, "restart this container only, in place; may be repeated")
	return command
}

func (c common) undo() *cobra.Command {
	var number int64
	command := c.edit("undo", "Go back to an earlier pod template", `Go back to an earlier pod template: that of the revision before the present one, or of the one that --to-revision
names. It is an edit of the template like any other, within partition and maxUnavailable.`,
		func(ctx context.Context, client *workload.Client, s *workload.Set) (workload.Patch, string, error) {
			revisions, err := client.Revisions(ctx, s)
			if err != nil {
				return workload.Patch{}, "", err
			}
			chosen, err := choose(s, revisions, number)
			if err != nil {
				return workload.Patch{}, "", err
			}
			done := fmt.Sprintf("goes back to revision %d (%s)", chosen.Number, chosen.Name)
			if workload.SameTemplate(chosen.Template, s.Template()) {
				return workload.Patch{}, fmt.Sprintf("has the template of revision %d already", chosen.Number), nil
			}
			if s.Paused {
				done += "; it is paused: flotilla rollout resume " + s.String() + " lets it begin"
			}
			patch, err := s.SetTemplate(chosen.Template)
			return patch, done, err
		})
	command.Flags().Int64Var(&number, "to-revision", 0, "number of the revision, as in flotilla rollout history; 0 is the one before the present")
	return command
}

// choose finds the revision to go back to. The number 0 means the newest one that is not the present.
func choose(s *workload.Set, revisions []*workload.Revision, number int64) (*workload.Revision, error) {
	if number != 0 {
		return numbered(s, revisions, number)
	}
	if s.Observed < s.Generation {
		return nil, fmt.Errorf("the operator of %s has not seen its latest edit yet, so which revision is the present one is not known: name one with --to-revision", s)
	}
	for _, r := range slices.Backward(revisions) {
		if !s.IsUpdated(r.Name) {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%s has no earlier revision", s)
}

func numbered(s *workload.Set, revisions []*workload.Revision, number int64) (*workload.Revision, error) {
	for _, r := range revisions {
		if r.Number == number {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%s has no revision %d: flotilla rollout history %s lists them", s, number, s)
}
