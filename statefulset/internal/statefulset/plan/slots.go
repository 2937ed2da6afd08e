package plan

import (
	"slices"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/ordering"

	"github.com/flotilla-project/flotilla/statefulset/internal/ordinals"
)

// maxEmpty bounds the slots of missing pods that one pass looks at, so that a set of absurd size costs no more than a
// large one.
const maxEmpty = 5000

// assignOrdinals gives every live ordinal its slot and finds the condemned pods. If the spec is invalid, all existing
// pods are live.
func (p *pass) assignOrdinals(reserved ordinals.Reserved) {
	if p.plan.Err != nil {
		for i := range p.pods {
			p.pods[i].rank, p.pods[i].live = i, true
			p.slots = append(p.slots, slot{
				ordinal: p.pods[i].ordinal,
				rank:    i,
				pod:     &p.pods[i],
			})
		}
		return
	}
	live := reserved.Live(p.numbers.start, p.numbers.replicas)
	p.live = live
	for i := range p.pods {
		o := &p.pods[i]
		o.rank, o.live = live.Rank(o.ordinal)
		if !o.live {
			p.condemned = append(p.condemned, o)
		}
	}
	slices.Reverse(p.condemned)
	p.missing = live.Len() - (len(p.pods) - len(p.condemned))
	p.makeSlots(live)
}

// makeSlots makes the slots.
func (p *pass) makeSlots(live ordinals.Live) {
	p.slots = make([]slot, 0, len(p.pods)+min(p.missing, maxEmpty))
	next, empty := 0, 0
	for rank, ordinal := range live.All() {
		for next < len(p.pods) && p.pods[next].ordinal < ordinal {
			next++
		}
		s := slot{ordinal: ordinal, rank: rank}
		if next < len(p.pods) && p.pods[next].ordinal == ordinal {
			s.pod = &p.pods[next]
		} else if empty++; empty > maxEmpty {
			break
		}
		p.slots = append(p.slots, s)
	}
	for i := next; empty > maxEmpty && i < len(p.pods); i++ {
		if o := &p.pods[i]; o.live && o.rank > p.slots[len(p.slots)-1].rank {
			p.slots = append(p.slots, slot{ordinal: o.ordinal, rank: o.rank, pod: o})
		}
	}
}

// selectTargets finds the pods that the update may change, in the order of the update.
//
// In order, they are those behind the first partition ones, from the highest ordinal down. Unordered, partition is a
// number of any pods: updated ones come first, then the others by priority, until only partition pods are left.
// Ordinals without a pod count as updated: they will be, unless too few others are old.
//
//	ordered, live 0 2 4, partition 2: 4.
//	unordered, ten pods of which 6 and 7 are updated, partition 6: 7 6 9 8.
func (p *pass) selectTargets() {
	if p.plan.Err != nil || onDelete(p.Set) || p.Chosen.Update == nil {
		return
	}
	if rollingUpdate(p.Set).UnorderedUpdate != nil {
		p.targets = p.unordered()
	} else {
		for i := len(p.slots) - 1; i >= 0 && p.slots[i].rank >= int(p.numbers.partition); i-- {
			if o := p.slots[i].pod; o != nil {
				p.targets = append(p.targets, o)
			}
		}
	}
	for _, o := range p.targets {
		o.inRange = true
	}
}

func (p *pass) unordered() []*pod {
	var ahead, behind []*pod
	for _, s := range slices.Backward(p.slots) {
		switch o := s.pod; {
		case o == nil:
		case o.Terminating || p.countsAsUpdated(o):
			ahead = append(ahead, o)
		default:
			behind = append(behind, o)
		}
	}
	all := append(ahead, p.inOrder(behind)...)
	n := int(p.numbers.replicas) - int(p.numbers.partition) - p.missing
	return all[:min(max(n, 0), len(all))]
}

// costOfUpdate is 1 for a pod that serves and that no update has begun with, else 0.
func (o *pod) costOfUpdate() int {
	if o.serving() && o.Lifecycle != contract.LifecyclePreparingUpdate {
		return 1
	}
	return 0
}

// countsAsUpdated reports whether the pod counts as updated where the partition is a number of pods.
func (p *pass) countsAsUpdated(o *pod) bool {
	return o.updated || p.FeatureGates.PreparingUpdateAsUpdate && o.Lifecycle == contract.LifecyclePreparingUpdate
}

// inOrder puts the pods in the order of their priorities. Without any, those come first of which an update takes nothing
// away: pods out of service, and those that are about to be updated.
func (p *pass) inOrder(list []*pod) []*pod {
	priority := rollingUpdate(p.Set).UnorderedUpdate.PriorityStrategy
	if priority == nil {
		slices.SortStableFunc(list, func(a, b *pod) int { return a.costOfUpdate() - b.costOfUpdate() })
		return list
	}
	states := make([]podstate.State, len(list))
	order := make([]int, len(list))
	for i, o := range list {
		states[i], order[i] = o.State, i
	}
	sorted := make([]*pod, 0, len(list))
	for _, i := range ordering.ByPriority(states, order, ordering.UpdateOptions{Priority: priority, UnkeyedFirst: p.FeatureGates.UnkeyedFirst}) {
		sorted = append(sorted, list[i])
	}
	return sorted
}
