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

// A pod leaves service in two steps: its readiness gate is closed, and its kubelet reports it not ready. A change that
// stops a container is written after the second one. An update of a pod that serves is therefore planned first, as one
// with a grace period is.
//
// A kubelet that has reported the pod not ready because of the readiness gate does not report it ready again. A kubelet
// that reported it for another cause may report it ready for a moment when that cause is gone: it knows the readiness
// gate from its last report. The transition time of Ready shows this, even if the moment was not observed, and the
// grace period begins again.

func takeOutOfService(c *action.PodChange) {
	if podstate.HasReadinessGate(c.Pod, contract.InPlaceUpdateReady) {
		c.SetCondition(contract.InPlaceUpdateReady, corev1.ConditionFalse, completion.ReasonStartUpdate, "")
	}
}

// unreadyIn is how long to wait at most until the pod is out of service as its kubelet reports it; 0 when it is, or has
// no readiness gate.
func unreadyIn(c *action.PodChange) time.Duration {
	if !podstate.HasReadinessGate(c.Pod, contract.InPlaceUpdateReady) {
		return 0
	}
	return podstate.UnreadyIn(c.Pod, c.Condition(contract.InPlaceUpdateReady), c.Now.Time)
}

// leaveService closes the readiness gate and returns the wait for the kubelet's answer; nil when it is there.
func leaveService(c *action.PodChange) *completion.Progress {
	takeOutOfService(c)
	left := unreadyIn(c)
	if left == 0 {
		return nil
	}
	p := completion.WaitFor(completion.ReasonKubelet, "the kubelet has yet to report the pod as not ready")
	p.RequeueAfter = left
	return p
}

// notReadySince is the transition time of Ready of a pod that is not ready; empty for one that is, or that shows no such
// condition.
func notReadySince(pod *corev1.Pod) string {
	if ready := podstate.Condition(pod, corev1.PodReady); ready != nil && ready.Status != corev1.ConditionTrue {
		return ready.LastTransitionTime.UTC().Format(time.RFC3339)
	}
	return ""
}

// writePlan closes the readiness gate and writes down the changes and the state that they begin with. Where another plan was
// not written yet, the pod has been out of service for a while.
func writePlan(p record.Prior, c *action.PodChange, s *record.State, g *record.Grace, ch record.Changes, way sets.Set[string]) {
	takeOutOfService(c)
	if way.Len() > 0 {
		s.ContainerBatchesRecord = []record.Batch{{Timestamp: c.Now, Containers: sets.List(way)}}
	}
	g.NotReadySince = notReadySince(c.Pod)
	g.UpdateEnvFromMetadata = len(ch.Metadata) > 0
	g.ContainerImages = ch.Images
	g.ContainerResources = ch.Resources
	g.ContainerRefMetadata = ch.Metadata
	g.ContainerRestarts = sets.List(ch.Restarts)
	g.RestartsOwed = p.Owed(c.Pod)
	if p.Grace != nil && p.State != nil {
		g.NotReadySince = p.Grace.NotReadySince
		s.UpdateTimestamp = p.State.UpdateTimestamp
	}
	record.WriteState(c, s)
	record.WriteGrace(c, g)
}

// carryOut writes the first batch of the plan.
func carryOut(p record.Prior, c *action.PodChange) {
	g, s := p.Grace, p.State
	record.RemoveGrace(c)
	p.Plain.Write(c)
	rest := g.Changes().MissingOn(c.Pod)
	way := sets.KeySet(s.LastContainerStatuses).Union(sets.KeySet(s.Restarts)).Union(completion.ResizesUnderWay(s, c.Pod))
	resized := completion.ResizedBefore(c.Pod, sets.KeySet(g.ContainerResources), rest)
	recordResized(s, c.Pod, resized)
	divide(c, s, rest, way.Union(resized)).start(c, s)
}

// BeginGrace writes that the grace period has begun, where the pod has one.
func BeginGrace(c *action.PodChange) {
	if before := record.Read(c); before.Grace != nil && before.State != nil {
		beginPeriod(before.Grace, c, before.State)
	}
}

// Next writes the change that the update of the pod leads to once the kubelet has answered and the grace period is
// over.
func Next(c *action.PodChange) {
	switch before := record.Read(c); {
	case before.Unreadable() || before.State == nil:
	case before.Grace != nil:
		carryOut(before, c)
	case before.State.HasNext():
		nextBatch(c, before.State)
	}
}

// NextResizes writes all resources that the update of the pod has yet to write, also the resources of later batches. It
// is for trying whether the server takes them.
func NextResizes(c *action.PodChange) {
	before := record.Read(c)
	if before.Unreadable() || before.State == nil {
		return
	}
	rest := before.State.Next()
	if before.Grace != nil {
		rest = before.Grace.Changes()
	}
	resizes := record.NewChanges()
	resizes.Resources = rest.MissingOn(c.Pod).Resources
	resizes.Write(c)
}

// beginPeriod lets the grace period begin when the pod is seen not ready, and again when it has been ready since; nil
// when it has begun.
func beginPeriod(g *record.Grace, c *action.PodChange, s *record.State) *completion.Progress {
	since := notReadySince(c.Pod)
	if left := unreadyIn(c); left > 0 {
		if g.NotReadySince != "" {
			g.NotReadySince = ""
			record.WriteGrace(c, g)
		}
		return leaveService(c)
	}
	if g.GraceSeconds > 0 && since != g.NotReadySince && podstate.HasReadinessGate(c.Pod, contract.InPlaceUpdateReady) {
		g.NotReadySince, s.UpdateTimestamp = since, c.Now
		record.WriteState(c, s)
		record.WriteGrace(c, g)
	}
	return nil
}
