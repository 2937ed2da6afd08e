package plan

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/failures"
	"github.com/flotilla-project/flotilla/core/workloads/model"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// scale fills empty ordinals, replaces pods that have ended and removes condemned ones.
func scale(p *pass) {
	switch {
	case p.plan.Err != nil:
	case ordered(p.Set):
		if p.createInOrder() {
			p.deleteInOrder()
		}
	default:
		p.createParallel()
		p.deleteParallel()
	}
	p.explainClaimless()
}

// createInOrder brings the lowest ordinal that is not available on, and reports whether there is none. One
// pod is created in a pass, after all before it are available.
func (p *pass) createInOrder() (done bool) {
	for i := range p.slots {
		s := &p.slots[i]
		o := s.pod
		switch {
		case o == nil:
			step := action.Step{Name: stepCreate}
			p.createPod(&step, s)
			p.plan.Add(step)
		case o.serving():
			continue
		case o.Terminating, o.Active, o.touched:
			if p.missing > 0 || len(p.condemned) > 0 {
				p.waitFor([]*pod{o}, "pods are created and deleted in order")
			}
		default:
			step := action.Step{Name: stepDelete}
			p.deleteEnded(&step, o)
			p.plan.Add(step)
		}
		return false
	}
	return true
}

// RetryFailedAt notes the pods that have failed and returns when they may be replaced, for Snapshot: each ordinal has its
// own pauses.
func RetryFailedAt(known *failures.Memory, seen model.Snapshot[*v1beta1.StatefulSet]) map[string]time.Time {
	update := ""
	if seen.Chosen.Update != nil {
		update = seen.Chosen.Update.Name
	}
	return known.RetryAt(seen.Set, update, seen.Pods, (*corev1.Pod).GetName, seen.Now)
}

// deleteEnded makes room for the successor of a pod that has ended. Where pods of its ordinal fail one after the other
// that takes longer each time.
func (p *pass) deleteEnded(step *action.Step, o *pod) {
	next := p.RetryFailedAt[o.Pod.Name]
	if wait := next.Sub(p.Now); wait > 0 && o.Pod.Status.Phase == corev1.PodFailed {
		p.plan.RequeueWithin(wait)
		p.plan.Wait(failures.WaitReason, o.Pod.Name, "%s", failures.Message("of ordinal "+strconv.Itoa(int(o.ordinal)), next))
		return
	}
	p.deletePod(step, o, "Ended", "it has ended and is replaced")
}

// healthy reports whether a condemned pod serves. That an update or its hook holds it plays no part: the
// update is not wanted any more.
func (o *pod) healthy() bool { return o.Ready && o.AvailableIn == 0 }

// blocksRemoval reports whether a condemned pod blocks the removal of others: it is out of service and may yet come
// up. One of another template will not: a user who wants it up has changed the template since.
func (o *pod) blocksRemoval() bool { return o.Active && !o.healthy() && o.updated }

// deleteInOrder removes the highest condemned pod once the one before it is gone. One that halts blocks the others,
// unless it is the lowest of such pods; until then pods go that neither block another pod nor serve. One that its
// hook holds goes before all others, so that there are never two.
//
//	condemned 1 to 4, of which 3 and 4 at the update revision, none ready: 2, then 1; 4 waits for 3.
func (p *pass) deleteInOrder() {
	var halting, next, useless *pod
	for _, o := range p.condemned { // descending
		if o.Terminating {
			p.waitForDeletion([]*pod{o}, "pods are deleted in order")
			return
		}
		if next == nil || o.deleting && !next.deleting {
			next = o
		}
		switch {
		case o.blocksRemoval():
			halting = o
		case useless == nil && !o.healthy():
			useless = o
		}
	}
	if next != nil && !next.deleting && next.blocksRemoval() && next != halting {
		p.waitFor([]*pod{halting}, "pods are deleted in order")
		next = useless
	}
	if next != nil && !next.touched {
		step := action.Step{Name: stepDelete}
		p.deleteCondemned(&step, next)
		p.plan.Add(step)
	}
}

// createParallel fills all ordinals at once, as far as scaleStrategy.maxUnavailable lets it: each ordinal
// that is not available, counted from the lowest, takes one of it. A pod that has ended is deleted in
// any case, since that costs nothing and nothing can come in its place before.
//
//	5 ordinals, maxUnavailable 2, no pods: 0 and 1 are created. Once 1 is available and 0 is not: 2.
func (p *pass) createParallel() {
	creates := action.Step{Name: stepCreate, SlowStart: true}
	deletes := action.Step{Name: stepDelete}
	budget := p.numbers.scaleUnavailable
	unavailable := []*pod{}
	throttled := false
	for i := range p.slots {
		s := &p.slots[i]
		switch o := s.pod; {
		case o == nil && budget > 0 && len(creates.Actions) == action.MaxCreates:
			creates.More = true
		case o == nil && budget > 0:
			if p.createPod(&creates, s) {
				budget--
			}
		case o == nil:
			throttled = true
		case !o.serving():
			budget--
			unavailable = append(unavailable, o)
			if !o.Active && !o.Terminating && !o.touched {
				p.deleteEnded(&deletes, o)
			}
		}
	}
	if throttled {
		p.waitFor(unavailable, fmt.Sprintf("no more pods are created (scaleStrategy.maxUnavailable %d)", p.numbers.scaleUnavailable))
	}
	p.plan.Add(deletes)
	p.plan.Add(creates)
}

// deleteParallel removes all condemned pods, whatever their health.
func (p *pass) deleteParallel() {
	step := action.Step{Name: stepDelete, SlowStart: true}
	for _, o := range p.condemned {
		if !o.Terminating && !o.touched {
			p.deleteCondemned(&step, o)
		}
	}
	p.plan.Add(step)
}

// deleteCondemned removes a condemned pod, after its claims have got the owners with which they stay or go.
func (p *pass) deleteCondemned(step *action.Step, o *pod) {
	if patches := p.correctOwners(o); len(patches) > 0 {
		p.claimsFirst = true
		p.plan.Wait(WaitClaims, o.Pod.Name, "the owner references of its PVCs are set first, then the pod is deleted")
		return
	}
	p.deletePod(step, o, "ScaleIn", "its ordinal was scaled in or reserved")
}

const (
	// waitReportedAfter is how long pods may be unavailable before the operator reports to the user that others wait
	// for them.
	waitReportedAfter = time.Minute
	// overdueSuffix ends the message of a wait that has outlasted patience.
	overdueSuffix = ", for more than a minute"
)

// waitFor records that the wait in the message lasts until pods are available, which may not exist yet.
func (p *pass) waitFor(pods []*pod, message string) {
	message += "; not available yet: "
	if len(pods) == 0 {
		p.plan.Wait(v1beta1.ReasonBlockedByUnavailablePods, "", "%snew pods", message)
		return
	}
	p.waitForAll(pods, message)
}

// waitForDeletion records that the wait in the message lasts until pods are gone.
func (p *pass) waitForDeletion(pods []*pod, message string) {
	p.waitForAll(pods, message+"; not deleted yet: ")
}

// waitForAll records a wait for pods, which the message names last.
func (p *pass) waitForAll(pods []*pod, message string) {
	message += namesOf(pods)
	if left := p.unavailableSince(pods[0]).Add(waitReportedAfter).Sub(p.Now); left > 0 {
		p.plan.RequeueWithin(left)
	} else {
		message += overdueSuffix
	}
	p.plan.Wait(v1beta1.ReasonBlockedByUnavailablePods, pods[0].Pod.Name, "%s", message)
}

// unavailableSince is about when the pod went out of service: the last turn in its life that its status shows.
func (p *pass) unavailableSince(o *pod) time.Time {
	if o.leaving {
		return p.Now
	}
	since := o.Pod.CreationTimestamp.Time
	if o.ReadySince.After(since) {
		since = o.ReadySince
	}
	if d := o.Pod.DeletionTimestamp; d != nil && d.After(since) {
		since = d.Time
	}
	return since
}
