package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/ordering"
)

// The kinds of workloads with a known order. The second is also a kind of Kubernetes.
const (
	cloneSet    = "CloneSet"
	statefulSet = "StatefulSet"
)

// Order is the order in which the workload that controls a job updates its pods. The zero value orders pods by name.
type Order struct {
	by              ranking
	minReadySeconds int32
	options         ordering.UpdateOptions
}

// ranking is how a workload orders pods where the user gives no priority.
type ranking int

const (
	byName ranking = iota
	byOrdinal
	byState
)

// IsRead reports whether OrderOf reads the workload: of others the order is not known, or it is always the same.
func IsRead(owner *metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return group == contract.AppsGroup && (owner.Kind == cloneSet || owner.Kind == statefulSet)
}

// OrderOf returns the order of a controller, given the workload itself or nil where that cannot be read: of a CloneSet
// the least valuable pods come first and of a StatefulSet, also of Kubernetes, those with the highest ordinals. A
// priority that the user sets in the workload comes before both. Pods of an unknown workload come in the order of their
// names.
func OrderOf(owner *metav1.OwnerReference, object map[string]any) Order {
	var w orderedWorkload
	if object != nil && runtime.DefaultUnstructuredConverter.FromUnstructured(object, &w) != nil {
		w = orderedWorkload{} // of a version that is not known here
	}
	rolling := &w.Spec.UpdateStrategy.RollingUpdate
	switch {
	case owner.Kind == statefulSet:
		return Order{by: byOrdinal, options: ordering.UpdateOptions{Priority: rolling.UnorderedUpdate.PriorityStrategy}}
	case object == nil || !IsRead(owner):
		return Order{}
	}
	options := ordering.UpdateOptions{Priority: rolling.PriorityStrategy, Scatter: rolling.ScatterStrategy}
	if old := &w.Spec.UpdateStrategy; options.Priority == nil && len(options.Scatter) == 0 {
		options = ordering.UpdateOptions{Priority: old.PriorityStrategy, Scatter: old.ScatterStrategy}
	}
	return Order{
		by:              byState,
		minReadySeconds: w.Spec.MinReadySeconds,
		options:         options,
	}
}

// orderedWorkload has the fields of a CloneSet and of an Advanced StatefulSet that order their pods, in all versions:
// in v1alpha1 a CloneSet has its strategies one level higher.
type orderedWorkload struct {
	Spec struct {
		MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
		UpdateStrategy  struct {
			PriorityStrategy *workload.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
			ScatterStrategy  workload.UpdateScatterStrategy   `json:"scatterStrategy,omitempty"`
			RollingUpdate    struct {
				PriorityStrategy *workload.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
				ScatterStrategy  workload.UpdateScatterStrategy   `json:"scatterStrategy,omitempty"`
				UnorderedUpdate  struct {
					PriorityStrategy *workload.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
				} `json:"unorderedUpdate"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
	} `json:"spec"`
}

// NodesOf returns the nodes of the active pods in the order of the update, each once.
func (o Order) NodesOf(pods []corev1.Pod, now time.Time) []string {
	var states []podstate.State
	for i := range pods {
		if s := podstate.Of(&pods[i], now, o.minReadySeconds); s.Active && s.Assigned {
			states = append(states, s)
		}
	}
	var nodes []string
	seen := map[string]bool{}
	for _, i := range o.sorted(states) {
		if node := states[i].Pod.Spec.NodeName; !seen[node] {
			seen[node] = true
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// sorted returns indexes into the pods.
func (o Order) sorted(pods []podstate.State) []int {
	all := make([]int, len(pods))
	for i := range all {
		all[i] = i
	}
	if o.by == byState {
		return ordering.ForUpdate(pods, all, o.options)
	}
	slices.SortFunc(all, func(a, b int) int {
		first := pods[a].Pod.Name
		second := pods[b].Pod.Name
		if o.by == byOrdinal {
			return cmp.Or(cmp.Compare(ordinal(second), ordinal(first)), cmp.Compare(first, second))
		}
		return cmp.Compare(first, second)
	})
	return ordering.ByPriority(pods, all, o.options)
}

// ordinal is the number at the end of a pod's name, -1 for none.
func ordinal(pod string) int {
	n, err := strconv.Atoi(pod[strings.LastIndexByte(pod, '-')+1:])
	if err != nil {
		return -1
	}
	return n
}
