package inplace

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Refresh brings the update of a pod on: the end of its grace period, its next batch, and in the end
// condition InPlaceUpdateReady True. A pod without an update has its condition set back to True when
// a crash has left it False; the first True of a new pod is not set here.
//
// On reason ReasonUnreadable the update stops until the caller begins an update again, with a Diff of the pod's
// revision to itself if no other is wanted; it then compares the whole pod.
func Refresh(c *action.PodChange, o Options) completion.Progress {
	if record.NothingUnderWay(c) {
		return completion.Progress{Complete: true}
	}
	before := record.Read(c)
	switch {
	case before.Grace != nil:
		return refreshGrace(c, before)
	case before.Unreadable():
		return *completion.WaitFor(completion.ReasonUnreadable, "%s", before.Err)
	case before.State == nil:
		putIntoService(c, false)
		return completion.Progress{Complete: true}
	}
	return refreshWritten(c, before.State, o)
}

// refreshWritten continues when all that was written so far is done, or waits only for resources.
func refreshWritten(c *action.PodChange, s *record.State, o Options) completion.Progress {
	a := completion.Of(c, s, o)
	if a.First == nil && s.HasNext() {
		switch p := nextBatch(c, s); {
		case p == nil:
			a = completion.Of(c, s, o)
		case p.Reason == completion.ReasonResize && s.Next().Restarted().Len() == 0:
			a.Resize = p
		default:
			return *p
		}
	}
	if a.First != nil {
		return *a.First
	}
	putIntoService(c, true)
	if a.Resize != nil {
		a.Resize.Serving = true
		return *a.Resize
	}
	return completion.Progress{Complete: true}
}

// PutIntoService sets condition InPlaceUpdateReady back to True in the middle of an update of which all that was
// written so far is done. The write of the next containers sets it False again.
func PutIntoService(c *action.PodChange, o Options) {
	before := record.Read(c)
	if before.Unreadable() || before.State != nil && completion.Of(c, before.State, o).Interrupts() {
		return
	}
	putIntoService(c, false)
}

// nextBatch writes the next batch, unless it is but limits to be raised of containers that do not run; nil when the
// changes left have no effect any more.
func nextBatch(c *action.PodChange, s *record.State) *completion.Progress {
	rest := s.Next().MissingOn(c.Pod)
	names := sets.List(rest.Containers())
	if s.PreCheckBeforeNext != nil && len(names) > 0 {
		for _, name := range s.PreCheckBeforeNext.ContainersRequiredReady {
			if !mayBeFollowed(c.Pod, name) {
				return completion.WaitFor(completion.ReasonNotReady, "container %s must be ready before the next containers are updated", name)
			}
		}
	}
	resized := completion.ResizedBefore(c.Pod, sets.KeySet(s.NextContainerResources), rest)
	b := divide(c, s, rest, resized)
	if p := b.awaitRun(c.Pod); p != nil && resized.Len() == 0 {
		return p
	}
	if b.interrupts(c.Pod) {
		if p := leaveService(c); p != nil {
			return p
		}
	}
	recordResized(s, c.Pod, resized)
	b.start(c, s)
	if len(names)+resized.Len() > 0 {
		return completion.WaitFor(completion.ReasonBatch, "the next batch of containers %v was started", names)
	}
	return nil
}

func refreshGrace(c *action.PodChange, before record.Prior) completion.Progress {
	g, s := before.Grace, before.State
	if podstate.ShortHash(c.Label(contract.RevisionLabel)) != podstate.ShortHash(g.Revision) {
		record.RemoveGrace(c)
		return *completion.WaitFor(completion.ReasonSuperseded, "the update to %s was dropped: the pod is labelled with another revision", g.Revision)
	}
	grace := time.Duration(g.GraceSeconds) * time.Second
	if s == nil { // without its start the period begins again
		s = g.State(c.Now)
		record.WriteState(c, s)
		p := completion.WaitFor(completion.ReasonGracePeriod, "pod has %s but %s not found",
			contract.InPlaceUpdateGraceAnnotation, contract.InPlaceUpdateStateAnnotation)
		p.RequeueAfter = grace
		return *p
	}
	if s.UpdateTimestamp.After(c.Now.Time) { // an earlier leader's clock was ahead: ours need not catch up
		s.UpdateTimestamp = c.Now
		record.WriteState(c, s)
	}
	if p := beginPeriod(g, c, s); p != nil {
		return *p
	}
	if left := s.UpdateTimestamp.Add(grace).Sub(c.Now.Time); left > 0 {
		p := completion.WaitFor(completion.ReasonGracePeriod, "the grace period ends at %s", s.UpdateTimestamp.Add(grace).UTC().Format(time.RFC3339))
		p.RequeueAfter = (left + time.Second - 1).Truncate(time.Second)
		return *p
	}
	carryOut(before, c)
	return *completion.WaitFor(completion.ReasonBatch, "the pod is not ready, and its grace period is over")
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
