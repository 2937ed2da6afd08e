package rollout

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

func (c common) undo() *cobra.Command {
	var number int64
	command := c.edit("undo", "Restore an earlier pod template", `Restore the pod template of the previous revision, or of the revision in --to-revision.

This is a change of the template like any other, within partition and maxUnavailable. Pods that the partition keeps at other
revisions, such as a broken canary, stay unchanged, and the command shows a warning.`,
		func(ctx context.Context, client *workload.Client, s *workload.Set) (workload.Patch, string, error) {
			revisions, err := client.Revisions(ctx, s)
			if err != nil {
				return workload.Patch{}, "", err
			}
			chosen, err := choose(s, revisions, number)
			if err != nil {
				return workload.Patch{}, "", err
			}
			pods, err := client.Pods(ctx, s)
			if err != nil {
				return workload.Patch{}, "", err
			}
			if stay := keptElsewhere(s, pods, chosen.Name); stay > 0 {
				fmt.Fprintf(c.streams.ErrOut, "warning: the partition keeps %d pods at other revisions; to roll them back, too, set partition 0: %s\n",
					stay, withoutPartition(s))
			}
			done := fmt.Sprintf("rolls back to revision %d (%s)", chosen.Number, chosen.Name)
			if workload.SameTemplate(chosen.Template, s.Template()) {
				return workload.Patch{}, fmt.Sprintf("already has the template of revision %d", chosen.Number), nil
			}
			if s.Paused {
				done += "; it is paused; to continue: flotilla rollout resume " + s.String()
			}
			patch, err := s.SetTemplate(chosen.Template)
			return patch, done, err
		})
	command.Flags().Int64Var(&number, "to-revision", 0, "number of the revision, as in flotilla rollout history; 0 means the previous one")
	return command
}

// keptElsewhere is how many pods of other revisions the partition keeps where they are when the workload goes to a
// revision. Of a StatefulSet these are pods with low ordinals, whatever their revision; else any.
func keptElsewhere(s *workload.Set, pods []*corev1.Pod, revision string) int {
	kept := s.Kept()
	others := 0
	for _, pod := range pods {
		if workload.SameRevision(workload.RevisionOf(pod), revision) || s.Kind.Name == "StatefulSet" && ordinal(pod) >= kept {
			continue
		}
		others++
	}
	return min(others, kept)
}

// ordinal is the number at the end of the name of a StatefulSet's pod.
func ordinal(pod *corev1.Pod) int {
	number, _ := strconv.Atoi(pod.Name[strings.LastIndex(pod.Name, "-")+1:])
	return number
}

// withoutPartition is the command that sets the partition to 0.
func withoutPartition(s *workload.Set) string {
	path := append(slices.Clone(s.RollingUpdatePath()), "partition")
	body := "0"
	for _, field := range slices.Backward(path) {
		body = fmt.Sprintf(`{"%s":%s}`, field, body)
	}
	return fmt.Sprintf("kubectl -n %s patch %s.%s.%s/%s --type merge -p '%s'",
		s.Namespace, s.Kind.Resource, s.Version, workload.Group, s.Name, body)
}

// choose finds the revision to go back to. The number 0 means the newest one that is not the present.
func choose(s *workload.Set, revisions []*workload.Revision, number int64) (*workload.Revision, error) {
	if number != 0 {
		return numbered(s, revisions, number)
	}
	if s.Observed < s.Generation {
		return nil, fmt.Errorf("the operator has not processed the latest change of %s yet, so its current revision is unknown: set --to-revision", s)
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
	return nil, fmt.Errorf("%s has no revision %d; to list them: flotilla rollout history %s", s, number, s)
}
