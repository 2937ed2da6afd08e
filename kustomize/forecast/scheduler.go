package forecast

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"

	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// scheduler chooses nodes as the default scheduler filters them: by cordons, taints, node affinity, the room that is left,
// volumes and required anti-affinity. Of those that are left it takes the one with the fewest pods of the cluster.
type scheduler struct {
	loads   map[string]*load // of nodes; they follow the pods of the simulated cluster
	volumes map[string]*corev1.PersistentVolume
}

// load is the use of a node by pods.
type load struct {
	pods []*corev1.Pod
	sum  corev1.ResourceList
}

// newScheduler returns the scheduler of a cluster with pods that never change, and with volumes.
func newScheduler(others []*corev1.Pod, volumes []*corev1.PersistentVolume) *scheduler {
	s := &scheduler{loads: map[string]*load{}, volumes: map[string]*corev1.PersistentVolume{}}
	for _, pod := range others {
		s.put(pod)
	}
	for _, v := range volumes {
		s.volumes[v.Name] = v
	}
	return s
}

// see takes an event in.
func (s *scheduler) see(e cluster.Event) {
	if old, is := e.Old.(*corev1.Pod); is {
		s.take(old)
	}
	if pod, is := e.Object.(*corev1.Pod); is && e.Type != cluster.Deleted {
		s.put(pod)
	}
}

// put adds a pod to the load of its node.
func (s *scheduler) put(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || podstate.IsFinished(pod) {
		return
	}
	of := s.load(pod.Spec.NodeName)
	of.pods = append(of.pods, pod)
	addTo(of.sum, requests(pod))
}

// take removes a pod from the load of its node, as it was put there.
func (s *scheduler) take(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || podstate.IsFinished(pod) {
		return
	}
	of := s.load(pod.Spec.NodeName)
	of.pods = slices.DeleteFunc(of.pods, func(p *corev1.Pod) bool { return p.UID == pod.UID })
	subtractFrom(of.sum, requests(pod))
}

func (s *scheduler) load(node string) *load {
	if s.loads[node] == nil {
		s.loads[node] = &load{sum: corev1.ResourceList{}}
	}
	return s.loads[node]
}

// site is a node with its pods.
type site struct {
	*corev1.Node
	*load
}

// schedule returns the node of a pod, or the reason why none takes it. A cluster without nodes takes all pods.
func (s *scheduler) schedule(w *cluster.World, pod *corev1.Pod) (node, reason string) {
	nodes := cluster.List[*corev1.Node](w.View(nil))
	if len(nodes) == 0 {
		return "node", ""
	}
	sites := make([]site, 0, len(nodes))
	for _, n := range nodes {
		sites = append(sites, site{Node: n, load: s.load(n.Name)})
	}
	refused := map[string]int{}
	best := -1
	wants := needs{
		pod:      pod,
		requests: requests(pod),
		volumes:  s.volumesOf(w, pod),
	}
	for _, candidate := range sites {
		if why := filter(candidate, sites, wants); why != "" {
			refused[why]++
			continue
		}
		if n := len(candidate.pods); best < 0 || n < best {
			best, node = n, candidate.Name
		}
	}
	if node != "" {
		return node, ""
	}
	return "", unschedulable(len(nodes), refused)
}

// volumesOf returns the volumes of the bound claims of a pod.
func (s *scheduler) volumesOf(w *cluster.World, pod *corev1.Pod) []*corev1.PersistentVolume {
	var all []*corev1.PersistentVolume
	for _, name := range claimsOf(&pod.Spec) {
		claim := cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), pod.Namespace, name)
		if claim == nil {
			continue
		}
		if bound := s.volumes[claim.Spec.VolumeName]; bound != nil {
			all = append(all, bound)
		}
	}
	return all
}

// unschedulable returns the message of the scheduler for a pod that fits on none of n nodes.
func unschedulable(n int, refused map[string]int) string {
	var reasons []string
	for why, n := range refused {
		reasons = append(reasons, fmt.Sprintf("%d %s", n, why))
	}
	slices.Sort(reasons)
	return fmt.Sprintf("0/%d nodes are available: %s", n, strings.Join(reasons, ", "))
}

// unscheduled describes the pods that wait for a node, with the message of the scheduler about the first; empty if there are none.
func unscheduled(pods []*corev1.Pod) string {
	waiting := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		c := podstate.Condition(pod, corev1.PodScheduled)
		return pod.DeletionTimestamp != nil || c == nil || c.Reason != corev1.PodReasonUnschedulable
	})
	if len(waiting) == 0 {
		return ""
	}
	message := podstate.Condition(waiting[0], corev1.PodScheduled).Message
	if len(waiting) == 1 {
		return fmt.Sprintf("; pod %s waits for a node: %s", waiting[0].Name, message)
	}
	return fmt.Sprintf("; %d pods wait for a node, such as %s: %s", len(waiting), waiting[0].Name, message)
}

// needs are the facts about a pod that nodes are judged by.
type needs struct {
	pod      *corev1.Pod
	requests corev1.ResourceList
	volumes  []*corev1.PersistentVolume
}

// filter returns the reason why a node does not take the pod, empty if it does. Reasons come in the order of the default
// scheduler.
func filter(at site, sites []site, wants needs) string {
	pod := wants.pod
	tolerates := func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}
	if taint, is := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), at.Spec.Taints, pod.Spec.Tolerations, tolerates, true); is {
		return fmt.Sprintf("node(s) had untolerated taint {%s: %s}", taint.Key, taint.Value)
	}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(at.Node); err != nil || !fits {
		return "node(s) didn't match Pod's node affinity/selector"
	}
	if why := lack(at, wants.requests); why != "" {
		return why
	}
	for _, v := range wants.volumes {
		if volume.CheckNodeAffinity(v, at.Labels) != nil {
			return "node(s) didn't match PersistentVolume's node affinity"
		}
	}
	if isRepelled(at, sites, pod) {
		return "node(s) didn't match pod anti-affinity rules"
	}
	return ""
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
			if slices.ContainsFunc(near.pods, repels) {
				return true
			}
		}
	}
	return false
}

// lack names the resource of which the node has too little left for a pod that wants so much, empty if there is none.
func lack(at site, wanted corev1.ResourceList) string {
	if most := at.Status.Allocatable.Pods(); !most.IsZero() && int64(len(at.pods)) >= most.Value() {
		return "Too many pods"
	}
	for name, more := range wanted {
		left, known := at.Status.Allocatable[name]
		if !known && len(at.Status.Allocatable) == 0 || more.IsZero() {
			continue
		}
		left = left.DeepCopy()
		left.Sub(at.sum[name])
		if left.Cmp(more) < 0 {
			return "Insufficient " + string(name)
		}
	}
	return ""
}
