package forecast

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// watchedBudget counts the healthy pods of a PodDisruptionBudget. Operators delete pods, and no PodDisruptionBudget forbids
// that: it is broken silently.
type watchedBudget struct {
	Budget

	selector labels.Selector
	others   int // healthy pods that are not of the workload
	ready    map[types.UID]bool
	was      bool // whether it was satisfied before the edit
}

// watchBudgets returns the budgets that select one of the pods.
func watchBudgets(scene *Scene, pods []*corev1.Pod) []*watchedBudget {
	var all []*watchedBudget
	for _, pdb := range scene.Budgets {
		selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err != nil {
			continue
		}
		b := &watchedBudget{
			Budget: Budget{
				Kind:    "PodDisruptionBudget",
				Name:    pdb.Name,
				Desired: int(pdb.Status.DesiredHealthy),
			},
			selector: selector,
			ready:    map[types.UID]bool{},
		}
		selected := false
		for _, pod := range pods {
			selected = selected || b.matches(pod)
			b.note(pod, false)
		}
		if !selected {
			continue
		}
		b.others = max(int(pdb.Status.CurrentHealthy)-len(b.ready), 0)
		b.Lowest, b.was = b.healthy(), b.healthy() >= b.Desired
		all = append(all, b)
	}
	return all
}

// shared names the PodUnavailableBudgets that also cover pods of other workloads: these pods are left out.
func (s *Scene) shared() []string {
	var all []string
	for _, budget := range s.Unavailable {
		fields, found, err := unstructured.NestedMap(budget.Object, "spec", "selector")
		if err != nil || !found {
			continue
		}
		var selector metav1.LabelSelector
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
			continue
		}
		matches, err := metav1.LabelSelectorAsSelector(&selector)
		if err == nil && slices.ContainsFunc(s.Others, func(pod *corev1.Pod) bool {
			return pod.Namespace == budget.GetNamespace() && matches.Matches(labels.Set(pod.Labels))
		}) {
			all = append(all, fmt.Sprintf("PodUnavailableBudget %s also covers pods of other workloads, which are left out", budget.GetName()))
		}
	}
	return all
}

func (b *watchedBudget) matches(pod *corev1.Pod) bool {
	return b.selector.Matches(labels.Set(pod.Labels))
}

func (b *watchedBudget) healthy() int { return b.others + len(b.ready) }

func (b *watchedBudget) note(pod *corev1.Pod, gone bool) {
	set(b.ready, pod.UID, !gone && b.matches(pod) && pod.DeletionTimestamp == nil && cluster.IsTrue(pod, corev1.PodReady))
}

// see takes the state of a pod in.
func (b *watchedBudget) see(pod *corev1.Pod, gone bool) {
	b.note(pod, gone)
	b.Lowest = min(b.Lowest, b.healthy())
	b.Broken = b.was && b.Lowest < b.Desired
}
