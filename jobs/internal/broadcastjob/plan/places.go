package plan

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/eligibility"
)

// place is a node, or the name of one that is gone, with the job's pods and record there.
type place struct {
	name string
	node *Node // nil for one that is gone
	pods []*corev1.Pod
	// recorded is true if the pod of the node has succeeded, and may be gone.
	recorded bool
	// pod is the pod that counts; nil for none.
	pod *corev1.Pod
	// state is how the node stands: by its record, or else by the pod that counts.
	state state
}

// fits reports whether the node gets a pod.
func (l *place) fits() bool { return l.node != nil && l.node.ShouldRun }

// leaving reports whether a pod of a node that gets another one is about to go. The job does not wait for a pod that
// leaves another node: the node may never report that it has gone.
func (l *place) leaving() bool { return l.state == leaving && l.fits() }

// stopping reports whether a pod that has failed by its restarts runs still.
func (l *place) stopping() bool { return l.state == failed && l.node != nil && !ended(l.pod) }

// desired reports whether the node counts: it has run a pod, runs one or gets one.
func (l *place) desired() bool {
	switch l.state {
	case succeeded, failed, active:
		return true
	case empty, leaving, ignored:
	}
	return l.fits()
}

// retries reports whether the node gets a pod in place of a pod with an ignored failure.
func (l *place) retries() bool { return l.state == ignored && l.fits() }

// waits reports whether the node lacks a pod.
func (l *place) waits() bool { return l.state == empty && l.fits() }

// lacks reports whether the node is to get a pod, now or later.
func (l *place) lacks() bool { return l.waits() || l.retries() }

// stays reports whether a pod that is active there may continue.
func (l *place) stays() bool { return l.node != nil && l.node.ShouldContinue }

// placesOf returns the nodes, and the missing nodes of pods, sorted by name.
func (s *Snapshot) placesOf() []*place {
	known := s.recorded()
	all := make([]*place, 0, len(s.Nodes))
	byName := make(map[string]*place, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		l := &place{name: n.Name, node: n, state: empty}
		if known[nodeKey(n.UID)] {
			l.recorded, l.state = true, succeeded
		}
		all = append(all, l)
		byName[n.Name] = l
	}
	gone := map[string]*place{}
	for _, pod := range s.Pods {
		name := eligibility.NodeOf(pod)
		l := byName[name]
		if l == nil || l.isYoungerThan(pod) {
			if l = gone[name]; l == nil {
				l = &place{name: name, state: empty}
				all = append(all, l)
				gone[name] = l
			}
		}
		l.pods = append(l.pods, pod)
	}
	r := rulesOf(s.Job)
	for _, l := range all {
		l.choose(r)
	}
	slices.SortFunc(all, func(a, b *place) int { return cmp.Compare(a.name, b.name) })
	return all
}

// isYoungerThan reports whether the pod has ended on another node of the same name, which was there before. A pod that
// runs is one that a node which was registered again still has.
func (l *place) isYoungerThan(pod *corev1.Pod) bool {
	return ended(pod) && pod.CreationTimestamp.Before(&l.node.CreationTimestamp)
}

// choose sorts the pods: the one that counts comes first. A success counts more than a pod that runs, that more than a
// failure, and that more than one that is ignored; among pods that run the one that has its node, and then the older one, counts.
func (l *place) choose(r rules) {
	if len(l.pods) == 0 {
		return
	}
	rank := func(pod *corev1.Pod) int {
		switch stateOf(pod, r) {
		case succeeded:
			return 0
		case active:
			return 1
		case leaving:
			return 2
		case failed:
			return 3
		default:
			return 4
		}
	}
	slices.SortFunc(l.pods, func(a, b *corev1.Pod) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			-cmp.Compare(a.Spec.NodeName, b.Spec.NodeName),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Name, b.Name),
		)
	})
	l.pod = l.pods[0]
	if !l.recorded {
		l.state = stateOf(l.pod, r)
	}
}
