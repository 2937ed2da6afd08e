package plan

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/ordering"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// marks are the patches of pods: the subset of those that are adopted, and deletion costs, by which workloads choose
// the pods that go.
func (c *computation) marks() []action.Action {
	costs := c.costs()
	var actions []action.Action
	for _, pod := range c.Pods {
		change := action.NewPodChange(pod, c.now())
		if i, ok := c.adopted[pod]; ok {
			c.mark(change, i)
		}
		if cost, ok := costs[pod]; ok {
			c.setCost(change, cost)
		}
		patches := change.Patches()
		if len(patches) == 0 {
			continue
		}
		// The values are right for the pod at any version, except for the cost that it had before.
		anyVersion := change.Annotation(v1beta1.ReplacedCostAnnotation) == pod.Annotations[v1beta1.ReplacedCostAnnotation]
		for i := range patches {
			patches[i].AnyVersion = anyVersion
		}
		actions = append(actions, action.Action{
			Verb:        action.PatchMetadata,
			Object:      pod,
			Independent: true,
			Patches:     patches,
			Reason:      "Spread",
			Message:     c.markText(pod, change),
			Event:       &action.Event{Failed: EventCostFailed},
		})
	}
	return actions
}

// setCost records in the pod which spread its cost belongs to, and remembers a cost of another client.
func (c *computation) setCost(change *action.PodChange, cost int) {
	text := strconv.Itoa(cost)
	_, adopted := c.adopted[change.Pod]
	if change.Pod.Annotations[contract.PodDeletionCostAnnotation] == text && !adopted && !isReleased(change.Pod) {
		return
	}
	remember(change)
	change.SetAnnotation(contract.PodDeletionCostAnnotation, text)
	match, _ := subsets.Read(change.Pod)
	switch {
	case adopted: // it gets a match
	case match.Name != c.Spread.Name:
		change.SetAnnotation(v1beta1.MatchedAnnotation, subsets.Text(v1beta1.Match{Name: c.Spread.Name}))
	case match.Released:
		match.Released = false
		change.SetAnnotation(v1beta1.MatchedAnnotation, subsets.Text(match))
	}
}

func (c *computation) markText(pod *corev1.Pod, change *action.PodChange) string {
	text := "cost " + change.Annotation(contract.PodDeletionCostAnnotation)
	if i, ok := c.adopted[pod]; ok {
		text = "subset " + c.Spread.Spec.Subsets[i].Name + ", " + text
	}
	return text
}

// costs are the deletion costs of active pods. Pods beyond their subset's limit go first, then the pods of the last subset,
// and so on; of older revisions the first subset goes first, so that it has room for the successors. While the revision of
// new pods is unknown no cost changes.
func (c *computation) costs() map[*corev1.Pod]int {
	costs := map[*corev1.Pod]int{}
	if !c.Target.HasCosts || c.Target.Latest == "" {
		return costs
	}
	n := len(c.limits)
	for _, version := range c.versions() {
		for i, pods := range c.groups[version].subsets {
			rank := i
			if version != c.Target.Latest {
				rank = n - 1 - i
			}
			beyond := 0
			if c.limits[i] != subsets.Unlimited {
				beyond = max(0, len(pods)-int(c.limits[i]))
			}
			for place, pod := range c.leastFirst(pods) {
				costs[pod] = subsets.CostStep * (n - rank)
				if place < beyond {
					costs[pod] = -subsets.CostStep * (rank + 1)
				}
			}
		}
	}
	for _, pod := range c.strays {
		costs[pod] = -subsets.CostStep * (n + 1)
	}
	return costs
}

// leastFirst sorts pods by how little is lost with them.
func (c *computation) leastFirst(pods []*corev1.Pod) []*corev1.Pod {
	states := make([]podstate.State, len(pods))
	for i, pod := range pods {
		states[i] = podstate.Of(pod, c.Now, 0)
		states[i].DeletionCost = 0 // it is the result
	}
	sorted := make([]*corev1.Pod, 0, len(pods))
	for _, i := range ordering.ForDeletion(states, nil) {
		sorted = append(sorted, pods[i])
	}
	return sorted
}
