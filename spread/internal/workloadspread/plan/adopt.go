package plan

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// adopt finds subsets for running pods that have none. Pods that were there before the spread enter the best subset for
// their node, even beyond its limit, and count from now on: their place was not given away. Others enter one only while it
// has a place: admission let them pass because there was none, or was not asked. Such a pod gets a note of its place first,
// as a pod that is being created does, and keeps it until it carries the mark. A pod with an ordinal enters the subset of its
// ordinal alone: the next pods get their subsets by number, whether these are full or not.
func (c *computation) adopt() {
	taken := map[string][]int32{}
	for _, pod := range c.loose {
		node := c.Nodes[pod.Spec.NodeName]
		if node == nil {
			continue
		}
		version := c.version(pod)
		g := c.group(version)
		if taken[version] == nil {
			taken[version] = make([]int32, len(c.limits))
		}
		old := !pod.CreationTimestamp.After(c.Spread.CreationTimestamp.Time)
		i := c.subsetFor(pod, node, g, taken[version], old)
		switch {
		case i == subsets.None && old:
			c.strays = append(c.strays, pod)
		case i == subsets.None:
		case old || c.limits[i] == subsets.Unlimited:
			c.adopted[pod] = i
			g.add(i, pod)
			g.seen[pod.Name] = pod
		case c.holds(version, i, pod.Name):
			c.adopted[pod] = i
			g.subsets[i] = append(g.subsets[i], pod)
			g.noted[pod.Name] = true
		default:
			c.reserved = append(c.reserved, reservation{version, i, pod.Name})
			taken[version][i]++
		}
	}
}

// holds reports whether the status, as it was read, keeps a place for the pod.
func (c *computation) holds(version string, subset int, pod string) bool {
	_, ok := c.known(version)[subset].CreatingPods[pod]
	return ok
}

// subsetFor returns the best subset for a pod on its node: the weights of preferred terms that the node matches count
// most, then whether the pod is as the subset's patch makes it, then whether there is room; of equal ones the first.
func (c *computation) subsetFor(pod *corev1.Pod, node *corev1.Node, g *group, taken []int32, beyond bool) int {
	best, score := subsets.None, int64(-1)
	mayEnter := c.mayEnter(pod, beyond)
	ledger := c.known(g.version)
	for i := range c.limits {
		subset := &c.Spread.Spec.Subsets[i]
		if !mayEnter(i) || !fits(pod, node, subset) {
			continue
		}
		_, holds := ledger[i].CreatingPods[pod.Name]
		left := c.limits[i] == subsets.Unlimited || holds || c.limits[i]-g.replicas[i]-int32(len(ledger[i].CreatingPods))-taken[i] > 0
		if !left && !beyond {
			continue
		}
		points := 100 * preference(node, subset)
		if c.hasPatch(pod, subset) {
			points += 10
		}
		if left {
			points++
		}
		if points > score {
			best, score = i, points
		}
	}
	return best
}

// mayEnter returns which subsets are open to a pod: where ordinals decide and the pod is no older than the spread, the one of its
// ordinal.
func (c *computation) mayEnter(pod *corev1.Pod, old bool) func(subset int) bool {
	o := c.Target.Ordinals
	if o == nil || old {
		return func(int) bool { return true }
	}
	own := subsets.None
	if rank, ok := o.Rank(pod.Name); ok {
		own = subsets.SubsetOfRank(c.Spread, c.limits, rank)
	}
	return func(subset int) bool { return subset == own }
}

// hasPatch reports whether the subset has a patch that would change nothing but annotations of the pod.
func (c *computation) hasPatch(pod *corev1.Pod, subset *v1beta1.WorkloadSpreadSubset) bool {
	whole := c.Whole[pod.UID]
	if whole == nil || len(subset.Patch.Raw) == 0 {
		return false
	}
	patched := whole.DeepCopy()
	if subsets.Patch(patched, subset.Patch.Raw) != nil {
		return false
	}
	patched.Annotations = whole.Annotations
	patched.Spec.Priority = whole.Spec.Priority
	return equality.Semantic.DeepEqual(whole, patched)
}

// NeedsWhole returns the pods for which patches decide about the subset: those that were there before the spread, have
// none yet and run on a node that several subsets fit.
func NeedsWhole(spread *v1beta1.WorkloadSpread, pods []*corev1.Pod, nodes map[string]*corev1.Node) (undecided []*corev1.Pod) {
	for _, pod := range pods {
		node := nodes[pod.Spec.NodeName]
		match, ok := subsets.MatchOf(pod)
		if node == nil || !podstate.IsActive(pod) || ok && match.Name == spread.Name || pod.CreationTimestamp.After(spread.CreationTimestamp.Time) {
			continue
		}
		fitting, patches := 0, 0
		for i := range spread.Spec.Subsets {
			if subset := &spread.Spec.Subsets[i]; fits(pod, node, subset) {
				fitting++
				patches += min(1, len(subset.Patch.Raw))
			}
		}
		if fitting > 1 && patches > 0 {
			undecided = append(undecided, pod)
		}
	}
	return undecided
}

// fits reports whether the pod could have been placed on its node with the rules of the subset.
func fits(pod *corev1.Pod, node *corev1.Node, subset *v1beta1.WorkloadSpreadSubset) bool {
	if eligibility.Repels(node, slices.Concat(pod.Spec.Tolerations, subset.Tolerations)) {
		return false
	}
	var required *corev1.NodeSelector
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	required = subsets.Narrowed(required, subset.RequiredNodeSelector)
	if required == nil {
		return true
	}
	selector, err := nodeaffinity.NewNodeSelector(required)
	return err == nil && selector.Match(node)
}

// preference is the sum of the weights of the subset's preferred terms that the node matches.
func preference(node *corev1.Node, subset *v1beta1.WorkloadSpreadSubset) int64 {
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(subset.PreferredNodeSelector)
	if err != nil {
		return 0
	}
	return terms.Score(node)
}

// mark sets the annotation of an adopted pod, and the labels and annotations that the subset's patch gives to new pods,
// but for labels by which its workload knows it.
func (c *computation) mark(change *action.PodChange, i int) {
	subset := &c.Spread.Spec.Subsets[i]
	if !subsets.IgnoresMetadata(c.Spread) {
		var patch struct {
			Metadata struct{ Labels, Annotations map[string]*string } `json:"metadata"`
		}
		if json.Unmarshal(subset.Patch.Raw, &patch) == nil {
			maps.DeleteFunc(patch.Metadata.Labels, func(label string, _ *string) bool { return subsets.IsFixed(label, c.Target.Selector) })
			merge(patch.Metadata.Labels, change.SetLabel, change.RemoveLabel)
			merge(patch.Metadata.Annotations, change.SetAnnotation, change.RemoveAnnotation)
		}
	}
	change.SetAnnotation(v1beta1.MatchedAnnotation, subsets.Text(v1beta1.Match{Name: c.Spread.Name, Subset: subset.Name}))
}

// merge sets the keys to which a patch gives a value, and removes the known keys to which it gives null: of annotations
// only our own are known.
func merge(patch map[string]*string, set func(key, value string), remove func(key string)) {
	for key, value := range patch {
		if value == nil {
			remove(key)
			continue
		}
		set(key, *value)
	}
}
