package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// pod is a pod of the set as one pass sees it.
type pod struct {
	podstate.State
	foreign  bool // about to be released or adopted
	updated  bool // at the update revision, or at one with an equal template
	deleting bool // in PreparingDelete
	finished bool // in phase Succeeded or Failed
	updating bool // an in-place update is not complete, though the pod may be in service all the while
	overdue  bool // has waited to the deadline for resources of its own revision: it needs a new pod
	touched  bool // has its action in this pass
	leaving  bool // goes out of service by that action
}

// state returns a pod and whether it is at the update revision.
func (p *pass) state(i int) (*podstate.State, bool) { return &p.pods[i].State, p.pods[i].updated }

// stays reports whether the pod is there to stay, as far as is known.
func (o *pod) stays() bool { return o.Active && !o.deleting && !o.leaving && !o.foreign }

// hasEnded reports whether the pod has ended and is not being deleted yet.
func (o *pod) hasEnded() bool { return o.finished && !o.Terminating && !o.foreign }

// up reports whether the pod is in service and stays so.
func (o *pod) up() bool { return o.stays() && o.Ready }

// serving reports whether the pod is available and stays so, and no update of it is under way.
func (o *pod) serving() bool { return o.stays() && o.Available && !o.updating }

// place is a node that has or should have pods of the set.
type place struct {
	name string
	node *corev1.Node // nil for one that does not exist
	eligibility.Verdict
	pods     []*pod // the oldest first
	counts   bool   // the node takes part in updates
	selected bool   // updateStrategy.rollingUpdate.selector matches the node
	inRange  bool   // the update reaches the node
	creating bool   // gets a pod in this pass
	losing   bool   // its specified pod goes in this pass, and counts for the update wherever the node is
}

// hasPod reports whether a pod is on the node, or on its way there or from there. One that has ended and is being
// deleted runs no more and blocks none.
func (l *place) hasPod() bool {
	return slices.ContainsFunc(l.pods, func(o *pod) bool { return !o.Terminating || !o.finished })
}

// staying are the pods that are there to stay, the oldest first.
func (l *place) staying() []*pod {
	for i, o := range l.pods {
		if o.stays() {
			continue
		}
		some := slices.Clone(l.pods[:i])
		for _, o := range l.pods[i+1:] {
			if o.stays() {
				some = append(some, o)
			}
		}
		return some
	}
	return l.pods
}

// isUp reports whether a pod on the node is in service and stays so.
func (l *place) isUp() bool { return slices.ContainsFunc(l.pods, (*pod).up) }

// hasBegun reports whether a pod is in service on the node, and each such pod is in an update that has begun, such as one
// that awaits its resources before its image changes.
func (l *place) hasBegun() bool {
	begun := false
	for _, o := range l.pods {
		if o.up() && o.Lifecycle == contract.LifecycleNormal {
			return false
		}
		begun = begun || o.up()
	}
	return begun
}

// isAvailable reports whether a pod on the node is available and stays so, though an update of it may be under way.
func (l *place) isAvailable() bool {
	return slices.ContainsFunc(l.pods, func(o *pod) bool { return o.stays() && o.Available })
}

// isLeft reports whether a pod of the node goes out of service in this pass.
func (l *place) isLeft() bool {
	return slices.ContainsFunc(l.pods, func(o *pod) bool { return o.leaving })
}

// isServing reports whether a pod on the node is available and stays so, and no update of it is under way.
func (l *place) isServing() bool { return slices.ContainsFunc(l.pods, (*pod).serving) }

// findPlaces makes the places of all nodes and of those that only pods know.
func (p *pass) findPlaces() {
	p.places = make([]place, 0, len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		p.places = append(p.places, place{name: n.Name, node: n.Node, Verdict: n.Verdict})
		if n.ShouldRun {
			p.desired++
		}
	}
	if !slices.IsSortedFunc(p.places, byName) {
		slices.SortFunc(p.places, byName)
	}
}

func byName(a, b place) int { return strings.Compare(a.name, b.name) }

// observed are the states of the pods in a snapshot.
type observed struct {
	pods         []pod         // orphans last
	requeueAfter time.Duration // until a state changes by itself; zero for never
}

// Observed returns the snapshot with the states of its pods, so that Compute and Status derive them once. Pods that the snapshot
// gets later are not seen: it is the last step of filling it.
func (s Snapshot) Observed() Snapshot {
	s.observed = newPass(s).observed
	return s
}

// observe derives the states of the pods.
func (p *pass) observe() *observed {
	found := &observed{pods: make([]pod, 0, len(p.Snapshot.Pods)+len(p.Orphans))}
	for i, list := range [][]*corev1.Pod{p.Snapshot.Pods, p.Orphans} {
		for _, o := range list {
			one := p.inspect(o)
			one.foreign = i == 1
			found.pods = append(found.pods, one)
		}
	}
	found.requeueAfter = p.plan.RequeueAfter
	return found
}

// placePods brings each pod to its place. Pods that belong to no node are left alone.
func (p *pass) placePods() {
	index := make(map[string]int, len(p.places))
	for i := range p.places {
		index[p.places[i].name] = i
	}
	known := len(p.places)
	where := make([]int, len(p.pods))
	for i := range p.pods {
		name := eligibility.NodeOf(p.pods[i].Pod)
		at := -1
		if name != "" {
			var ok bool
			if at, ok = index[name]; !ok {
				at = len(p.places)
				index[name] = at
				p.places = append(p.places, place{name: name})
			}
		}
		where[i] = at
	}
	p.distribute(where)
	if len(p.places) > known {
		slices.SortFunc(p.places, byName)
	}
}

// distribute gives each place its pods; where has the place of each, -1 for none.
func (p *pass) distribute(where []int) {
	starts := make([]int, len(p.places)+2)
	for _, at := range where {
		starts[at+2]++
	}
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	all := make([]*pod, len(p.pods))
	next := slices.Clone(starts)
	for i, at := range where {
		all[next[at+1]] = &p.pods[i]
		next[at+1]++
	}
	for i := range p.places {
		first, last := starts[i+1], starts[i+2]
		p.places[i].pods = all[first:last:last]
		if last-first > 1 {
			slices.SortFunc(p.places[i].pods, byAge)
		}
	}
}

// byAge puts pods that have their node first, then the oldest, then by name.
func byAge(a, b *pod) int {
	if a.Assigned != b.Assigned {
		if a.Assigned {
			return -1
		}
		return 1
	}
	return cmp.Or(a.Pod.CreationTimestamp.Compare(b.Pod.CreationTimestamp.Time), strings.Compare(a.Pod.Name, b.Pod.Name))
}

// inspect derives the state of a pod of the set.
func (p *pass) inspect(o *corev1.Pod) pod {
	state := podstate.Of(o, p.Now, p.Set.Spec.MinReadySeconds)
	return pod{
		State:    state,
		overdue:  state.Active && p.workload.Overdue(state),
		updated:  p.hasUpdateTemplate(state.Revision) || p.hasTemplateGeneration(o),
		deleting: state.Lifecycle == contract.LifecyclePreparingDelete,
		finished: podstate.IsFinished(o),
	}
}

// UnreadySince is since when the node has not been ready, as far as its condition shows; ready is true if it is.
func UnreadySince(node *corev1.Node) (since time.Time, ready bool) {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return node.CreationTimestamp.Time, false
}
