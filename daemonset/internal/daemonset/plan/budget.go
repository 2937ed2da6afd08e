package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// budget is the room that maxUnavailable leaves.
type budget struct {
	maxUnavailable int
	down           []*place // nodes without a pod in service
	begun          []*place // nodes with a pod that still serves, and leaves service in a later step of an update that has begun
	changing       []*place // nodes with a pod that serves and is not available yet
	updating       []*place // nodes with a pod that is available while an update of it is under way
}

// budgetOf counts the nodes for which counts returns true, and those that lose a specified pod by this plan: the update
// takes fewer nodes out of service for them, even if it leaves them out or skips them otherwise.
func (p *pass) budgetOf(counts func(*place) bool) *budget {
	b := &budget{maxUnavailable: p.numbers.maxUnavailable}
	for i := range p.places {
		l := &p.places[i]
		switch {
		case l.isServing():
		case l.losing:
			b.down = append(b.down, l)
		case !counts(l) || p.skips(l):
		case l.isAvailable():
			b.updating = append(b.updating, l)
		case l.hasBegun():
			b.begun = append(b.begun, l)
		case l.isUp():
			b.changing = append(b.changing, l)
		default:
			b.down = append(b.down, l)
		}
	}
	return b
}

// allows reports whether the pod of a node that is up may be taken out of service. One that counts already waits only
// for those that are worse: a pod of the last update that is ready and not yet available may be replaced in the
// place of another one, but never all of them at once; one that is available while an update of it is under way, such as
// a resize that its node puts off, makes one more unavailable. Those with an update that has begun leave service without
// asking again, and have their places.
func (b *budget) allows(l *place) bool {
	unavailable := len(b.down)
	if !l.hasBegun() {
		unavailable += len(b.begun)
	}
	if l.isAvailable() {
		unavailable += len(b.changing)
	}
	if l.isServing() {
		unavailable += len(b.updating)
	}
	return unavailable < b.maxUnavailable
}

// spend counts a node with a pod that goes out of service.
func (b *budget) spend(l *place) {
	b.down = append(b.down, l)
	b.begun, b.changing, b.updating = without(b.begun, l), without(b.changing, l), without(b.updating, l)
}

// used are the nodes that count.
func (b *budget) used() []*place { return slices.Concat(b.down, b.begun, b.changing, b.updating) }

func without(list []*place, l *place) []*place {
	var rest []*place
	for _, other := range list {
		if other != l {
			rest = append(rest, other)
		}
	}
	return rest
}

// skips reports whether unreadyNodePolicy lets the node use up nothing.
func (p *pass) skips(l *place) bool {
	policy := rollingUpdate(p.Set).UnreadyNodePolicy
	if l.node == nil || policy == "" || policy == v1beta1.CountUnreadyNodes {
		return false
	}
	since, ready := UnreadySince(l.node)
	if known, ok := p.UnreadySince[l.name]; ok && known.Before(since) {
		since = known
	}
	return !ready && (policy == v1beta1.SkipUnreadyNodes || !since.After(p.updateStart()))
}

// isSkipped reports whether the node, which has no pod in service, is left out of account.
func (p *pass) isSkipped(l *place) bool { return p.skips(l) && !l.isServing() }

// updateStart is when the update to the present update revision began.
func (p *pass) updateStart() time.Time {
	began := p.Set.Status.UpdateStartTime
	if began == nil || p.Set.Status.UpdateRevision != p.updateHash() {
		return p.Now
	}
	return began.Time
}

const (
	// blockedAfter is how long nodes may be without a pod in service before the operator reports that others wait for
	// them.
	blockedAfter = time.Minute
	// mostNamed is how many nodes or pods a message names.
	mostNamed = 5
)

// waitForNodes records that the node or pod in the message waits for the nodes. Nodes that are down for long, as many
// as are allowed to be, block it. Nodes with a pod that is available while it is updated do not: the wait of that pod
// shows why it takes so long.
func (p *pass) waitForNodes(nodes []*place, most int, reason, message string) {
	var updating, unavailable []*place
	long, next := 0, time.Duration(0)
	for _, l := range nodes {
		if l.isAvailable() && !l.isServing() {
			updating = append(updating, l)
			continue
		}
		unavailable = append(unavailable, l)
		left := p.downSince(l).Add(blockedAfter).Sub(p.Now)
		switch {
		case left <= 0:
			long++
		case next == 0 || left < next:
			next = left
		}
	}
	if len(unavailable) > 0 {
		message += "; not available yet: " + namesOf(unavailable)
	}
	if len(updating) > 0 {
		message += "; being updated: " + namesOf(updating)
	}
	if long >= max(most, 1) {
		reason = v1beta1.ReasonBlockedByUnavailableNodes
	} else {
		p.plan.RequeueWithin(next)
	}
	p.plan.Wait(reason, "", "%s", message)
}

// downSince is about when the node lost its pod in service: the last turn that it and its pods show.
func (p *pass) downSince(l *place) time.Time {
	since := time.Time{}
	later := func(t time.Time) {
		if t.After(since) {
			since = t
		}
	}
	for _, o := range l.pods {
		if o.leaving {
			return p.Now
		}
		later(o.Pod.CreationTimestamp.Time)
		later(o.ReadySince)
		if o.Terminating {
			later(o.Pod.DeletionTimestamp.Time)
		}
	}
	if since.IsZero() || l.creating {
		return p.Now
	}
	return since
}

// namesOf are the names of the first nodes.
func namesOf(nodes []*place) string {
	var names []string
	for _, l := range nodes[:min(len(nodes), mostNamed)] {
		names = append(names, l.name)
	}
	if len(nodes) > mostNamed {
		names = append(names, "and others")
	}
	return strings.Join(names, ", ")
}
