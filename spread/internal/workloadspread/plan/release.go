package plan

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// Release is the plan of a pass over a spread that is gone: its pods lose the deletion costs that came from it.
func Release(pods []*corev1.Pod, known action.Refusals, now time.Time) action.Plan {
	p := action.Plan{Refusals: known, Now: now}
	p.Add(action.Step{Name: "release", Actions: releases(pods, nil, metav1.NewTime(now))})
	return action.Admit(p)
}

// releases are the patches of pods that are their spread's no more. A pod gets back the cost that it had before. It keeps
// its subset, so that a spread of the same name continues with it. Its annotation shows that its cost is not the spread's:
// a cost that another client sets from now on stays.
func releases(pods []*corev1.Pod, event *action.Event, now metav1.Time) (actions []action.Action) {
	for _, pod := range pods {
		match, ok := subsets.Read(pod)
		if !ok || match.Released || !podstate.IsActive(pod) {
			continue
		}
		change := action.NewPodChange(pod, now)
		before, had := pod.Annotations[v1beta1.ReplacedCostAnnotation]
		switch {
		case !isFromSpread(pod):
		case had:
			change.SetAnnotation(contract.PodDeletionCostAnnotation, before)
		default:
			change.RemoveAnnotation(contract.PodDeletionCostAnnotation)
		}
		change.RemoveAnnotation(v1beta1.ReplacedCostAnnotation)
		if match.Released = true; match.Subset == "" {
			change.RemoveAnnotation(v1beta1.MatchedAnnotation)
		} else {
			change.SetAnnotation(v1beta1.MatchedAnnotation, subsets.Text(match))
		}
		actions = append(actions, action.Action{
			Verb:        action.PatchMetadata,
			Object:      pod,
			Independent: true,
			Patches:     change.Patches(),
			Reason:      "Release",
			Message:     "the pod is released from WorkloadSpread " + match.Name,
			Event:       event,
		})
	}
	return actions
}

// remember keeps the cost that a pod has, if another client has set it.
func remember(change *action.PodChange) {
	switch before, ok := change.Pod.Annotations[contract.PodDeletionCostAnnotation]; {
	case !ok:
		change.RemoveAnnotation(v1beta1.ReplacedCostAnnotation)
	case !isFromSpread(change.Pod):
		change.SetAnnotation(v1beta1.ReplacedCostAnnotation, before)
	}
}

// isReleased reports whether the pod's annotation shows that it has no cost of a spread's.
func isReleased(pod *corev1.Pod) bool {
	match, ok := subsets.Read(pod)
	return ok && match.Released
}

// isFromSpread reports whether the cost of a pod comes from a spread: from the one that the pod names, and with a value that
// a spread gives.
func isFromSpread(pod *corev1.Pod) bool {
	match, ok := subsets.Read(pod)
	cost, err := strconv.Atoi(pod.Annotations[contract.PodDeletionCostAnnotation])
	return ok && !match.Released && err == nil && cost != 0 && cost%subsets.CostStep == 0
}
