package inplace

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Progress is the progress of the update of a pod.
type Progress struct {
	// Complete is true if nothing is under way. A pod that was never updated is complete.
	Complete bool
	// Reason is one word for machines, one of the Reason values; empty when Complete.
	Reason string
	// Serving is true if only resources are awaited that the node does not give now: the pod serves while it waits.
	Serving bool
	// Message describes in one sentence the cause of the wait.
	Message string
	// AgentMissing is true if the update waits for a node agent that does not come: the pod needs a new one in its place,
	// or is put back into service by ServeAsIs.
	AgentMissing bool
	// RequeueAfter asks for another look after this time, 0 for none.
	RequeueAfter time.Duration
}

// Refresh brings the update of a pod on: the end of its grace period, its next batch, and in the end
// condition InPlaceUpdateReady True. A pod without an update has its condition set back to True when
// a crash has left it False; the first True of a new pod is not set here.
//
// On reason ReasonUnreadable the update stops until the caller begins an update again, with a Diff of the pod's
// revision to itself if no other is wanted; it then compares the whole pod.
func Refresh(c *action.PodChange, o Options) Progress {
	if nothingUnderWay(c) {
		return Progress{Complete: true}
	}
	before := readPrior(c)
	switch {
	case before.grace != nil:
		return refreshGrace(c, before)
	case before.unreadable():
		return *waitFor(ReasonUnreadable, "%s", before.err)
	case before.state == nil:
		putIntoService(c, false)
		return Progress{Complete: true}
	}
	return refreshWritten(c, before.state, o)
}

// refreshWritten continues when all that was written so far is done, or waits only for resources.
func refreshWritten(c *action.PodChange, s *State, o Options) Progress {
	a := awaitedOf(c, s, o)
	if a.first == nil && s.hasNext() {
		switch p := nextBatch(c, s); {
		case p == nil:
			a = awaitedOf(c, s, o)
		case p.Reason == ReasonResize && s.next().restarted().Len() == 0:
			a.resize = p
		default:
			return *p
		}
	}
	if a.first != nil {
		return *a.first
	}
	putIntoService(c, true)
	if a.resize != nil {
		a.resize.Serving = true
		return *a.resize
	}
	return Progress{Complete: true}
}

// PutIntoService sets condition InPlaceUpdateReady back to True in the middle of an update of which all that was
// written so far is done. The write of the next containers sets it False again.
func PutIntoService(c *action.PodChange, o Options) {
	before := readPrior(c)
	if before.unreadable() || before.state != nil && awaitedOf(c, before.state, o).interrupts() {
		return
	}
	putIntoService(c, false)
}

// nextBatch writes the next batch, unless it is but limits to be raised of containers that do not run; nil when the
// changes left have no effect any more.
func nextBatch(c *action.PodChange, s *State) *Progress {
	rest := s.next().missingOn(c.Pod)
	names := sets.List(rest.containers())
	if s.PreCheckBeforeNext != nil && len(names) > 0 {
		for _, name := range s.PreCheckBeforeNext.ContainersRequiredReady {
			if !mayBeFollowed(c.Pod, name) {
				return waitFor(ReasonNotReady, "container %s must be ready before the next containers are updated", name)
			}
		}
	}
	resized := resizedBefore(c.Pod, sets.KeySet(s.NextContainerResources), rest)
	b := divide(c, s, rest, resized)
	if p := b.awaitRun(c.Pod); p != nil && resized.Len() == 0 {
		return p
	}
	if b.interrupts(c.Pod) {
		if p := leaveService(c); p != nil {
			return p
		}
	}
	s.recordResized(c.Pod, resized)
	b.start(c, s)
	if len(names)+resized.Len() > 0 {
		return waitFor(ReasonBatch, "the next batch of containers %v was started", names)
	}
	return nil
}

func refreshGrace(c *action.PodChange, before prior) Progress {
	g, s := before.grace, before.state
	if podstate.ShortHash(c.Label(contract.RevisionLabel)) != podstate.ShortHash(g.Revision) {
		removeGrace(c)
		return *waitFor(ReasonSuperseded, "the update to %s was dropped: the pod is labelled with another revision", g.Revision)
	}
	grace := time.Duration(g.GraceSeconds) * time.Second
	if s == nil { // without its start the period begins again
		s = g.state(c.Now)
		writeState(c, s)
		p := waitFor(ReasonGracePeriod, "pod has %s but %s not found",
			contract.InPlaceUpdateGraceAnnotation, contract.InPlaceUpdateStateAnnotation)
		p.RequeueAfter = grace
		return *p
	}
	if s.UpdateTimestamp.After(c.Now.Time) { // an earlier leader's clock was ahead: ours need not catch up
		s.UpdateTimestamp = c.Now
		writeState(c, s)
	}
	if p := g.beginPeriod(c, s); p != nil {
		return *p
	}
	if left := s.UpdateTimestamp.Add(grace).Sub(c.Now.Time); left > 0 {
		p := waitFor(ReasonGracePeriod, "the grace period ends at %s", s.UpdateTimestamp.Add(grace).UTC().Format(time.RFC3339))
		p.RequeueAfter = (left + time.Second - 1).Truncate(time.Second)
		return *p
	}
	before.carryOut(c)
	return *waitFor(ReasonBatch, "the pod is not ready, and its grace period is over")
}

func (g *Grace) state(now metav1.Time) *State {
	return &State{
		Revision: g.Revision, UpdateTimestamp: now, UpdateEnvFromMetadata: g.UpdateEnvFromMetadata,
		UpdateImages: len(g.ContainerImages) > 0, UpdateResources: len(g.ContainerResources) > 0,
	}
}

// putIntoService sets condition InPlaceUpdateReady True. One that is absent is set only after an update.
func putIntoService(c *action.PodChange, evenAbsent bool) {
	if !podstate.HasReadinessGate(c.Pod, contract.InPlaceUpdateReady) {
		return
	}
	old := c.Condition(contract.InPlaceUpdateReady)
	if old == nil && evenAbsent || old != nil && old.Status != corev1.ConditionTrue {
		c.SetCondition(contract.InPlaceUpdateReady, corev1.ConditionTrue, "", "")
	}
}

func waitFor(reason, format string, args ...any) *Progress {
	return &Progress{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
