package plan

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// selectRange finds the nodes that the update reaches: those that are updated already, then those in the middle of it,
// then the others that the selector matches, each from the last name down, without the last partition ones of all. With
// partitioned scaling those that have never had a pod come last, from the first name up, as they get it. Where nodes
// revert, and the template is the revision that they revert to, it reaches all that have or had a pod.
//
//	a new, b and c old, partition 1: a, c.
//	a, c and d old, b new, partition 2, selector a, c, d: b, d.
func (p *pass) selectRange() {
	r := rollingUpdate(p.Set)
	selector, err := nodeSelector(r.Selector)
	if err != nil && p.plan.Err == nil {
		p.plan.Err = err
	}
	reverts := r.UnselectedNodePolicy == v1beta1.RevertUnselectedNodes
	everywhere := false
	if reverts {
		p.former, everywhere = p.revertsTo()
	}
	if onDelete(p.Set) || p.plan.Err != nil {
		return
	}
	all, first := p.inOrder(selector, reverts, everywhere)
	n := min(max(p.takingPart-p.numbers.partition, 0), len(all))
	if everywhere {
		n = max(n, len(all)-first)
	}
	p.inRange = all[:n]
	for _, l := range p.inRange {
		l.inRange = true
	}
}

// inOrder returns the nodes that an update without a partition reaches, in the order in which it reaches them, and how many
// at the end of them get their first pod by partitioned scaling. It marks those that the selector matches.
func (p *pass) inOrder(selector labels.Selector, reverts, everywhere bool) (all []*place, firstPods int) {
	var updated, updating, rest, first []*place
	for i := range slices.Backward(p.places) {
		l := &p.places[i]
		if !l.counts {
			continue
		}
		l.selected = everywhere || selector.Matches(labels.Set(l.node.Labels))
		switch stage := l.stage(); {
		case reverts && !l.selected:
		case PartitionedScaling(p.Set) && l.ShouldRun && !l.hasPod() && !p.HadPod[l.name]:
			first = append(first, l)
		case stage == isUpdated:
			updated = append(updated, l)
		case stage == isUpdating:
			updating = append(updating, l)
		case l.selected:
			rest = append(rest, l)
		}
	}
	slices.Reverse(first)
	return slices.Concat(updated, updating, rest, first), len(first)
}

// nodeSelector is the selector of updateStrategy.rollingUpdate; nil matches every node.
func nodeSelector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// countTakingPart marks the nodes that count in updates and returns how many there are.
func (p *pass) countTakingPart() int {
	for i := range p.places {
		l := &p.places[i]
		if l.counts = p.takesPart(l); l.counts {
			p.takingPart++
		}
	}
	return p.takingPart
}

// takesPart reports whether the node counts in updates: one that exists and should run a pod or has one.
func (p *pass) takesPart(l *place) bool {
	if l.node == nil || p.FeatureGates.PruneIneligibleNodes && !l.ShouldRun {
		return false
	}
	return l.ShouldRun || l.hasPod()
}

// stage is how far the update of a node is.
type stage int

const (
	isOld      stage = iota // an old pod that is not in PreparingDelete
	isUpdating              // no pod, or old ones in PreparingDelete only
	isUpdated               // a new pod
)

// stage goes by the revision of the pods and not by their number: in a surge the successor of an old pod is old, too,
// where the update does not reach the node. It must not bring the node into the update, in place of another one.
func (l *place) stage() stage {
	found := isUpdating
	for _, o := range l.pods {
		switch {
		case o.Terminating || o.foreign:
		case o.updated:
			return isUpdated
		case !o.deleting:
			found = isOld
		}
	}
	return found
}

// target is the revision of new pods on the node: the update revision, but on nodes out of range the former one if
// unselectedNodePolicy is Revert.
func (p *pass) target(l *place) *appsv1.ControllerRevision {
	if p.former != nil && l.counts && !l.inRange {
		return p.former
	}
	return p.Chosen.Update
}

// atTarget reports whether the pod is of a revision that it may stay at on the node. Nodes that return from the update
// revision keep any but that one.
func (p *pass) atTarget(l *place, o *pod) bool {
	if p.target(l) == p.Chosen.Update {
		return o.updated
	}
	return !o.updated
}

// outdated reports whether the update replaces the pod, once it is not paused. With type OnDelete no node is in range.
func (p *pass) outdated(l *place, o *pod) bool {
	return (l.inRange || l.counts && p.former != nil) && (o.overdue || !p.atTarget(l, o))
}

// unwanted reports whether a pod is to come in the place of this one.
func (p *pass) unwanted(l *place, o *pod) bool {
	return o.SpecifiedDelete || p.outdated(l, o) && !paused(p.Set)
}
