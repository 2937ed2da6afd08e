package plan

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// currentRevision is the short hash of the last revision that was rolled out to all nodes. The update revision
// becomes that once all nodes have it and nothing keeps nodes back: nodes that are lost or removed, and leave the
// nodes of a canary behind, make it none. If its status names no existing revision, a set starts with the one that
// all its nodes have, or with its only one.
func (p *pass) currentRevision() string {
	common := p.commonRevision()
	stored := p.Set.Status.CurrentRevision
	r := rollingUpdate(p.Set)
	switch {
	case p.plan.Err != nil:
		return stored
	case !p.isKnown(stored):
		return cmp.Or(common, p.onlyRevision(), stored)
	case common != "" && common == p.updateHash() && p.numbers.partition == 0 && r.Selector == nil:
		return common
	}
	return stored
}

// onlyRevision is the short hash of the update revision if there is none of another template; else it is empty.
func (p *pass) onlyRevision() string {
	for _, some := range [][]*appsv1.ControllerRevision{p.Revisions, p.OrphanRevisions} {
		for _, r := range some {
			if !p.hasUpdateTemplate(revision.Hash(r)) {
				return ""
			}
		}
	}
	return p.updateHash()
}

// commonRevision is the short hash of the revision of which all nodes that take part in updates have an available
// pod, and none of another revision; empty if there is none. Nodes that are not Ready do not count.
func (p *pass) commonRevision() string {
	common := ""
	for i := range p.places {
		l := &p.places[i]
		if !l.counts {
			continue
		}
		if _, ready := UnreadySince(l.node); !ready {
			continue
		}
		if !l.isServing() {
			return ""
		}
		for _, o := range l.pods {
			hash := o.Revision
			if o.updated {
				hash = p.updateHash()
			}
			if hash != cmp.Or(common, hash) {
				return ""
			}
			common = hash
		}
	}
	return common
}

// revertsTo finds the revision to which nodes return that the update leaves out: the current revision, or, where no
// such revision is known, the newest one except the update revision; nil for none. If the template is the current
// revision there is nothing to return from: the update reaches all nodes.
func (p *pass) revertsTo() (former *appsv1.ControllerRevision, everywhere bool) {
	if p.workload.Revisions.HasTemplate(p.current, p.Chosen.Update) {
		return nil, true
	}
	for _, r := range p.OrphanRevisions { // another client has removed its owner: the set adopts it
		if r.DeletionTimestamp == nil && p.current != "" && revision.Hash(r) == p.current {
			return r, false
		}
	}
	for _, r := range p.Revisions {
		switch hash := revision.Hash(r); {
		case r.DeletionTimestamp != nil || p.hasUpdateTemplate(hash):
		case hash == p.current:
			return r, false
		case former == nil || cmp.Or(cmp.Compare(r.Revision, former.Revision), cmp.Compare(r.Name, former.Name)) > 0:
			former = r
		}
	}
	return former, false
}
