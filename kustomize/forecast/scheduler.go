package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcehelper "k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// scheduler chooses nodes as the default scheduler filters them: by cordons, taints, node affinity, required anti-affinity
// and the room that is left. Of those that are left it takes the one with the fewest pods of the cluster.
type scheduler struct {
	others map[string]load // of pods that the simulated cluster has not, by node
}

// load is the use of a node by pods.
type load struct {
	pods []*corev1.Pod
	sum  map[corev1.ResourceName]resource.Quantity
}

func newScheduler(others []*corev1.Pod) *scheduler {
	return &scheduler{others: loads(others)}
}

// loads returns the loads of pods, by node.
func loads(pods []*corev1.Pod) map[string]load {
	all := map[string]load{}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		of := all[pod.Spec.NodeName]
		if of.sum == nil {
			of.sum = map[corev1.ResourceName]resource.Quantity{}
		}
		for name, more := range requests(pod) {
			sum := of.sum[name]
			sum.Add(more)
			of.sum[name] = sum
		}
		of.pods = append(of.pods, pod)
		all[pod.Spec.NodeName] = of
	}
	return all
}

// site is a node with its pods.
type site struct {
	*corev1.Node

	loads [2]load
}

func (s site) count() int { return len(s.loads[0].pods) + len(s.loads[1].pods) }

// schedule returns the node of a pod, or the reason why none takes it. A cluster without nodes takes all pods.
func (s *scheduler) schedule(w *cluster.World, pod *corev1.Pod) (node, reason string) {
	nodes := cluster.List[*corev1.Node](w.View(nil))
	if len(nodes) == 0 {
		return "node", ""
	}
	placed := loads(w.Pods())
	sites := make([]site, 0, len(nodes))
	for _, n := range nodes {
		sites = append(sites, site{Node: n, loads: [2]load{s.others[n.Name], placed[n.Name]}})
	}
	refused := map[string]int{}
	best := -1
	wanted := requests(pod)
	for _, candidate := range sites {
		if why := filter(candidate, sites, pod, wanted); why != "" {
			refused[why]++
			continue
		}
		if n := candidate.count(); best < 0 || n < best {
			best, node = n, candidate.Name
		}
	}
	if node != "" {
		return node, ""
	}
	return "", unschedulable(len(nodes), refused)
}

// unschedulable returns the message of the scheduler for a pod that fits on none of n nodes.
func unschedulable(n int, refused map[string]int) string {
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		reasons = append(reasons, fmt.Sprintf("%d %s", refused[why], why))
	}
	return fmt.Sprintf("0/%d nodes are available: %s", n, strings.Join(reasons, ", "))
}

// filter returns the reason why a node does not take the pod, empty if it does.
func filter(at site, sites []site, pod *corev1.Pod, wanted map[corev1.ResourceName]resource.Quantity) string {
	tolerates := func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}
	if taint, is := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), at.Spec.Taints, pod.Spec.Tolerations, tolerates, true); is {
		return fmt.Sprintf("node(s) had untolerated taint {%s: %s}", taint.Key, taint.Value)
	}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(at.Node); err != nil || !fits {
		return "node(s) didn't match Pod's node affinity/selector"
	}
	if isRepelled(at, sites, pod) {
		return "node(s) didn't match pod anti-affinity rules"
	}
	return lack(at, wanted)
}

// isRepelled reports whether the node is in a topology with a pod that the pod must not be near.
func isRepelled(at site, sites []site, pod *corev1.Pod) bool {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return false
	}
	for _, term := range pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		place, has := at.Labels[term.TopologyKey]
		if err != nil || !has || len(term.Namespaces) > 0 && !slices.Contains(term.Namespaces, pod.Namespace) {
			continue
		}
		repels := func(other *corev1.Pod) bool {
			return other.Namespace == pod.Namespace && other.UID != pod.UID && selector.Matches(labels.Set(other.Labels))
		}
		for _, near := range sites {
			if near.Labels[term.TopologyKey] != place {
				continue
			}
			if slices.ContainsFunc(near.loads[0].pods, repels) || slices.ContainsFunc(near.loads[1].pods, repels) {
				return true
			}
		}
	}
	return false
}

// lack names the resource of which the node has too little left for a pod that wants so much, empty if there is none.
func lack(at site, wanted map[corev1.ResourceName]resource.Quantity) string {
	if most := at.Status.Allocatable.Pods(); !most.IsZero() && int64(at.count()) >= most.Value() {
		return "Too many pods"
	}
	for name, more := range wanted {
		left, known := at.Status.Allocatable[name]
		if !known && len(at.Status.Allocatable) == 0 || more.IsZero() {
			continue
		}
		left = left.DeepCopy()
		for _, load := range at.loads {
			left.Sub(load.sum[name])
		}
		if left.Cmp(more) < 0 {
			return "Insufficient " + string(name)
		}
	}
	return ""
}

func requests(pod *corev1.Pod) map[corev1.ResourceName]resource.Quantity {
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
}
