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

// edit returns a subcommand that makes one edit. The edit reports its result, in words that follow the workload's name; an
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
			done += " (dry run: not applied)"
		}
		fmt.Fprintf(c.streams.Out, "%s/%s %s\n", s.Kind.Name, s.Name, done)
		return nil
	})
	command.Flags().BoolVar(&dryRun, "dry-run", false, "validate the change on the server without applying it")
	return command
}

func (c common) pause() *cobra.Command {
	return c.edit("pause", "Pause the update of pods", `Stop the update of further pods. Scaling continues, and running updates of pods are completed.`,
		func(_ context.Context, _ *workload.Client, s *workload.Set) (workload.Patch, string, error) {
			switch {
			case s.OnDelete:
				return workload.Patch{}, "", fmt.Errorf("%s has strategy OnDelete: pods are updated only when you delete them", s)
			case s.Paused:
				return workload.Patch{}, "is already paused", nil
			}
			patch, err := s.Pause()
			return patch, "paused", err
		})
}

func (c common) resume() *cobra.Command {
	return c.edit("resume", "Continue a paused update", "",
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
	command := c.edit("restart", "Restart all pods, in place if their policy allows it", `Restart all pods, within maxUnavailable and partition.

By default, pods are recreated: the template gets annotation `+restartedAnnotation+`, as with
kubectl. With an in-place policy, the node agent restarts the containers in place, all of them or those of --container, and
pods keep their IPs and volumes: the template gets annotation `+inPlaceAnnotation+`.`,
		func(_ context.Context, _ *workload.Client, s *workload.Set) (workload.Patch, string, error) {
			if s.Paused {
				return workload.Patch{}, "", fmt.Errorf("%s is paused; resume it first: flotilla rollout resume %s", s, s)
			}
			now := c.clock.Now().UTC().Format(time.RFC3339)
			if !s.InPlace() {
				if len(containers) > 0 {
					return workload.Patch{}, "", cli.MisuseErrorf("%s recreates its pods: --container needs a policy that updates pods in place", s)
				}
				patch, err := s.Annotate(restartedAnnotation, now)
				return patch, "restarted", err
			}
			for _, name := range containers {
				if !slices.Contains(s.Containers(), name) {
					return workload.Patch{}, "", cli.MisuseErrorf("%s has no container %q; use %s", s, name, strings.Join(s.Containers(), ", "))
				}
			}
			patch, err := s.Annotate(inPlaceAnnotation, strings.Join(append([]string{now}, containers...), " "))
			return patch, "restarts in place", err
		})
	command.Flags().StringArrayVarP(&containers, "container", "c", nil, "restart only this container, in place; may be repeated")
	return command
}
