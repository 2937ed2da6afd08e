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
