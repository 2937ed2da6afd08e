package plan

import (
	"math"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// numbers are the counts that the spec asks for, with percentages resolved.
type numbers struct {
	replicas         int32 // spec.replicas
	partition        int32 // pods that stay at the current revision
	partitioned      bool  // the partition keeps pods, though perhaps there are none
	maxSurge         int32 // pods above replicas during an update; 0 while paused
	maxUnavailable   int32 // pods that may be out of service
	scaleUnavailable int32 // pods that may be unavailable while scaling out; MaxInt32 without a limit
}

// readNumbers resolves the spec's numbers. The fields of rollingUpdate count only with type RollingUpdate.
func readNumbers(set *v1beta1.CloneSet) (numbers, error) {
	n := numbers{replicas: 1, scaleUnavailable: math.MaxInt32}
	if set.Spec.Replicas != nil {
		n.replicas = *set.Spec.Replicas
	}
	var err error
	if m := set.Spec.ScaleStrategy.MaxUnavailable; m != nil {
		if n.scaleUnavailable, err = rollout.ScaleMaxUnavailable(m, n.replicas); err != nil {
			return n, err
		}
	}
	r := rollingUpdate(set)
	if n.partition, err = rollout.Partition(r.Partition, n.replicas); err != nil {
		return n, err
	}
	n.partitioned = rollout.KeepsPods(r.Partition)
	if n.maxSurge, err = rollout.MaxSurge(r.MaxSurge, n.replicas, r.Paused); err != nil {
		return n, err
	}
	n.maxUnavailable, err = rollout.MaxUnavailable(r.MaxUnavailable, n.replicas, n.maxSurge)
	if onDelete(set) {
		n.maxUnavailable = max(n.maxUnavailable, 1)
	}
	return n, err
}

// rollingUpdate is spec.updateStrategy.rollingUpdate, empty where absent or without effect.
func rollingUpdate(set *v1beta1.CloneSet) v1beta1.RollingUpdateCloneSetStrategy {
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && !onDelete(set) {
		return *r
	}
	return v1beta1.RollingUpdateCloneSetStrategy{}
}

func onDelete(set *v1beta1.CloneSet) bool {
	return set.Spec.UpdateStrategy.Type == v1beta1.OnDelete
}

func (p *pass) policy() podupdate.Policy {
	return podupdate.Policy(rollingUpdate(p.Set).PodUpdatePolicy)
}

// tally counts the active pods. Old pods are those not at the update revision.
type tally struct {
	updated, old                   int32 // not in PreparingDelete
	specifiedUpdated, specifiedOld int32 // of those, specified for deletion
	unavailable                    int32 // of the rest, not available
	specifiedUnavailable           int32 // of the specified, not available
	deletingUpdated, deletingOld   int32 // in PreparingDelete
	total                          int32
}

// count tallies the pods. With preparingAsUpdated, pods in PreparingUpdate count as updated.
func count(pods []pod, preparingAsUpdated bool) tally {
	var t tally
	for i := range pods {
		o := &pods[i]
		updated := o.countsAsUpdated(preparingAsUpdated)
		t.total++
		switch {
		case o.deleting && updated:
			t.deletingUpdated++
			continue
		case o.deleting:
			t.deletingOld++
			continue
		case updated:
			t.updated++
		default:
			t.old++
		}
		switch {
		case o.specified && updated:
			t.specifiedUpdated++
		case o.specified:
			t.specifiedOld++
		case !o.Available:
			t.unavailable++
		}
		if o.specified && !o.Available {
			t.specifiedUnavailable++
		}
	}
	return t
}

func (o *pod) countsAsUpdated(preparingAsUpdated bool) bool {
	return o.updated || preparingAsUpdated && o.Lifecycle == contract.LifecyclePreparingUpdate
}

// scalesAsUpdated reports whether the pod is one of the updated ones while scaling.
func (p *pass) scalesAsUpdated(o *pod) bool {
	return o.countsAsUpdated(p.FeatureGates.PreparingUpdateAsUpdate)
}

// staying is the tally of old and updated pods without the specified ones, for which others will stand.
func (t tally) staying() tally {
	return tally{old: t.old - t.specifiedOld, updated: t.updated - t.specifiedUpdated}
}

// balance is the result of the numbers and the pods together.
type balance struct {
	create, createOld int32 // pods to create now, and how many of them at the current revision
	missing           int32 // pods that are missing; more than create when scaling out is limited
	remove, removeOld int32 // pods too many, and how many of them must be old
	readyLimit        int32 // ready pods that may be deleted now; negative when too many are unavailable
	updateNum         int32 // pods to move to the update revision; negative: back to the current one
	updateBudget      int32 // pods that may be out of service during the update
}

// currentBalance compares the wanted pods with those that exist.
//
// Example: replicas 5, partition 3, maxUnavailable 1, maxSurge 1, five old pods. Two old pods are too many and two
// updated ones are missing, so one surge pod is created at the update revision. Once it exists the total is 6 and one
// old pod may go, whether the new one is available or not.
//
// It is computed once in a pass, after pods were released and adopted: a rule that changes more ends the pass.
func (p *pass) currentBalance() balance {
	if p.balance == nil {
		b := p.computeBalance()
		p.balance = &b
	}
	return *p.balance
}

func (p *pass) computeBalance() balance {
	n := p.numbers
	t := count(p.pods, false)
	deltaOld, deltaNew := p.deltas(t.staying())
	scaling := count(p.pods, p.FeatureGates.PreparingUpdateAsUpdate)
	scaleOld, scaleNew := p.deltas(scaling)
	surge, surgeOld := p.surge(scaling, scaleOld, scaleNew)

	deleting := scaling.deletingUpdated + scaling.deletingOld
	deletingOld := scaling.deletingOld
	specified := scaling.specifiedUpdated + scaling.specifiedOld
	unavailable := scaling.unavailable + deleting
	have := scaling.total
	haveOld := scaling.old + deletingOld
	if p.excludesPreparingDelete() {
		have, haveOld = have-deleting, haveOld-deletingOld
	}
	want, wantOld := n.replicas+surge, n.partition+surgeOld

	b := balance{missing: max(want-have, 0)}
	b.create = min(b.missing, max(n.scaleUnavailable-unavailable, 0))
	b.createOld = min(b.create, max(wantOld-haveOld, 0))
	b.remove = max(have-specified-want, 0)
	b.removeOld = max(haveOld-scaling.specifiedOld-wantOld, 0)
	b.readyLimit = n.maxUnavailable + scaling.total - n.replicas - unavailable - scaling.specifiedUnavailable
	b.updateBudget = n.maxUnavailable + t.total - n.replicas
	b.updateNum = podsToMove(deltaOld, deltaNew)
	return b
}

// deltas are how many old and how many updated pods there are too many; negative: too few.
func (p *pass) deltas(t tally) (old, updated int32) {
	old = t.old - p.numbers.partition
	updated = t.updated - (p.numbers.replicas - p.numbers.partition)
	if !p.rollsBack() {
		old, updated = max(old, 0), min(updated, 0)
	}
	return old, updated
}

// podsToMove is how many pods are at the one revision and missing at the other: to move to the update
// revision, or, negative, back to the current one. Pods that are missing at both are made, not moved.
func podsToMove(deltaOld, deltaNew int32) int32 {
	if deltaOld < 0 {
		return -min(-deltaOld, max(deltaNew, 0))
	}
	return min(deltaOld, max(-deltaNew, 0))
}

// surge is how many pods may exist above replicas now, and how many of them at the current revision:
// in place of specified pods that may not go before, or of pods that are about to be recreated, overdue ones too. Pods
// that are updated in place need none, unless maxUnavailable is 0 and leaves them no other room, or a disruption budget
// lets them not go: surge pods stay then until the update is done.
func (p *pass) surge(t tally, deltaOld, deltaNew int32) (surge, old int32) {
	n := p.numbers
	if n.maxSurge == 0 {
		return 0, 0
	}
	specified := t.specifiedUpdated + t.specifiedOld
	unavailable := t.unavailable + t.deletingUpdated + t.deletingOld
	forScale := int32(0)
	if specified > 0 {
		forScale = min(max(unavailable+specified-n.maxUnavailable, p.specifiedHeld(), 0), specified)
	}
	forUpdate := podsToMove(deltaOld, deltaNew)
	forUpdateOld := int32(0)
	if forUpdate < 0 {
		forUpdate = -forUpdate
		forUpdateOld = forUpdate
	}
	if n.maxUnavailable > 0 {
		forUpdate = min(forUpdate, max(p.needSurge(deltaOld < 0), t.total-n.replicas))
	}
	if !onDelete(p.Set) && forUpdateOld == 0 {
		forUpdate += p.needReplacement()
	}
	if forScale >= forUpdate {
		surge = min(n.maxSurge, forScale)
		return surge, min(surge, max(forScale-t.specifiedUpdated, 0))
	}
	surge = min(n.maxSurge, forUpdate)
	return surge, min(surge, forUpdateOld)
}

// specifiedHeld is how many specified pods a disruption budget lets not go.
func (p *pass) specifiedHeld() int32 {
	n := int32(0)
	for i := range p.pods {
		if o := &p.pods[i]; o.specified && p.Refusals.ByBudget(o.Pod) {
			n++
		}
	}
	return n
}

// rollsBack reports whether a raised partition takes updated pods back to the current revision.
func (p *pass) rollsBack() bool {
	c := p.Chosen
	return p.FeatureGates.PartitionRollback && c.Current != nil && c.Update != nil && c.Current.Name != c.Update.Name
}

func (p *pass) excludesPreparingDelete() bool {
	return p.FeatureGates.ExcludePreparingDelete || p.Set.Spec.ScaleStrategy.ExcludePreparingDelete
}
