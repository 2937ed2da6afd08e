package inplace

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/quantity"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
)

// chooseBatch picks the containers that go first, among those with changes and those that are on their way already: of
// the native sidecars that restart one after the other, as the kubelet starts them, and then the containers that have
// no launch priority or the highest one. One key is written once, so containers that read a changed key of a chosen one
// come along. A sidecar that is only resized has no turn of its own: a container may have to release the resources that
// it gets.
func chooseBatch(c *action.PodChange, s *record.State, ch record.Changes, onTheirWay sets.Set[string]) sets.Set[string] {
	for i := range c.Pod.Spec.InitContainers {
		name := c.Pod.Spec.InitContainers[i].Name
		if running.Sidecar(c.Pod, name) != nil && (ch.Stops(c.Pod, name) || onTheirWay.Has(name) && completion.RestartAwaited(s, c, name) != nil) {
			return withReadersOfTheSameKeys(ch, sets.New(name))
		}
	}
	return withReadersOfTheSameKeys(ch, highestPriority(c.Pod, ch.Containers().Union(withoutDown(s, c, onTheirWay))))
}

// withoutDown leaves out containers that are down: others would wait for them in vain.
func withoutDown(s *record.State, c *action.PodChange, names sets.Set[string]) sets.Set[string] {
	up := sets.New[string]()
	for name := range names {
		if !isDown(s, c, name) {
			up.Insert(name)
		}
	}
	return up
}

// highestPriority are the named containers that have no launch priority or the highest one.
func highestPriority(pod *corev1.Pod, names sets.Set[string]) sets.Set[string] {
	chosen, highest := sets.New[string](), sets.New[string]()
	top, found := 0, false
	for name := range names {
		priority, ok := launchPriority(running.Container(pod, name))
		switch {
		case !ok:
			chosen.Insert(name)
		case !found || priority > top:
			top = priority
			found = true
			highest = sets.New(name)
		case priority == top:
			highest.Insert(name)
		}
	}
	return chosen.Union(highest)
}

func withReadersOfTheSameKeys(ch record.Changes, chosen sets.Set[string]) sets.Set[string] {
	for grown := true; grown; {
		grown = false
		for name, m := range ch.Metadata {
			if !chosen.Has(name) && sharesKeyWithAny(m, ch, chosen) {
				chosen.Insert(name)
				grown = true
			}
		}
	}
	return chosen
}

func sharesKeyWithAny(m record.Metadata, ch record.Changes, chosen sets.Set[string]) bool {
	for name := range chosen {
		if m.SharesKey(ch.Metadata[name]) {
			return true
		}
	}
	return false
}

// launchPriority is the priority with which the pod was created, read from the launch barrier.
func launchPriority(c *corev1.Container) (int, bool) {
	if c == nil {
		return 0, false
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if c.Env[i].Name != contract.ContainerBarrierEnv || from == nil || from.ConfigMapKeyRef == nil {
			continue
		}
		text, ok := strings.CutPrefix(from.ConfigMapKeyRef.Key, contract.ContainerBarrierKeyPrefix)
		priority, err := strconv.Atoi(text)
		return priority, ok && err == nil
	}
	return 0, false
}

// mayBeFollowed reports whether the containers that come after the one of that name may change: it is ready. A native sidecar
// has started, as kubelets want it; it may become ready with the containers that come after it.
func mayBeFollowed(pod *corev1.Pod, name string) bool {
	status := running.Status(pod, name)
	switch {
	case running.Container(pod, name) == nil:
		return true
	case status == nil:
		return false
	}
	return status.Ready || running.Sidecar(pod, name) != nil && status.State.Running != nil && !running.StartsUp(status)
}

// batch is the next batch of changes: now is written at once, behind has to wait, and later comes after the batch and
// includes behind.
type batch struct {
	chosen, onTheirWay sets.Set[string]
	now, behind, later record.Changes
	begun              bool // it is the rest of the batch that was written last
}

// divide finds the next batch of the changes. Changes that wait for its resizes, and resizes that wait, come with the
// next write. That write requires no ready container: it is the rest of this batch. The containers on their way belong
// to it.
func divide(c *action.PodChange, s *record.State, ch record.Changes, onTheirWay sets.Set[string]) batch {
	chosen := chooseBatch(c, s, ch, onTheirWay)
	rest := restOfBatch(s, ch, chosen)
	begun := rest.Len() > 0
	if begun {
		chosen = rest
	}
	now, later := ch.Split(chosen)
	now, held := resizesLast(now, c, s)
	now, behind := resizesFirst(now, c.Pod, onTheirWay)
	behind.Add(held)
	later.Add(behind)
	return batch{
		chosen:     chosen,
		onTheirWay: onTheirWay,
		now:        now,
		behind:     behind,
		later:      later,
		begun:      begun,
	}
}

// restOfBatch are the chosen containers with changes left that belong to the batch that was written last. It is empty
// if no such batch is begun.
func restOfBatch(s *record.State, left record.Changes, chosen sets.Set[string]) sets.Set[string] {
	n := len(s.ContainerBatchesRecord)
	if n == 0 || !s.HasNext() || s.PreCheckBeforeNext != nil {
		return nil
	}
	recorded := sets.New(s.ContainerBatchesRecord[n-1].Containers...)
	return withReadersOfTheSameKeys(left, recorded.Intersection(chosen).Intersection(left.Containers()))
}

// record has one entry for the batch, with the moment of its last write. Resizes of a batch may go ahead of its
// restarts.
func (b batch) record(c *action.PodChange, s *record.State) {
	if b.now.Containers().Union(b.onTheirWay).Len() == 0 {
		return
	}
	names := b.now.Containers().Union(b.behind.Restarted()).Union(b.onTheirWay)
	if b.begun {
		last := len(s.ContainerBatchesRecord) - 1
		names.Insert(s.ContainerBatchesRecord[last].Containers...)
		s.ContainerBatchesRecord = s.ContainerBatchesRecord[:last]
	}
	s.ContainerBatchesRecord = append(s.ContainerBatchesRecord, record.Batch{Timestamp: c.Now, Containers: sets.List(names)})
}

// awaitRun names a container that has to run before any part of the batch can be written; nil if a part can be written.
func (b batch) awaitRun(pod *corev1.Pod) *completion.Progress {
	if b.now.Containers().Len() > 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(b.behind.Resources)) {
		if limit := raisesLimit(pod, name, b.behind.Resources[name]); limit != "" {
			return completion.WaitFor(completion.ReasonResize, "container %s is not running: its %s limit is raised when it runs", name, limit)
		}
	}
	return nil
}

// interrupts reports whether the pod leaves service for the batch.
func (b batch) interrupts(pod *corev1.Pod) bool {
	return b.now.Interrupt(pod) || b.behind.Interrupt(pod) || completion.RestartsToCome(pod, b.onTheirWay)
}

// start writes the batch and records the batch and the changes left in the state. It is not complete before the
// containers on their way are.
func (b batch) start(c *action.PodChange, s *record.State) {
	now, later := b.now, b.later
	for name := range now.Images {
		recordContainer(s, c, name)
	}
	s.RecordRestarts(c.Pod, now.Restarts)
	recordRaisedLimits(s, c.Pod, now)
	b.record(c, s)
	s.NextContainerImages = later.Images
	s.NextContainerResources = later.Resources
	s.NextContainerRefMetadata = later.Metadata
	s.NextContainerRestarts = sets.List(later.Restarts)
	s.PreCheckBeforeNext = nil
	if later.Containers().Len() > 0 && b.behind.Containers().Len() == 0 {
		s.PreCheckBeforeNext = &record.PreCheck{ContainersRequiredReady: sets.List(b.chosen)}
	}
	if b.interrupts(c.Pod) {
		takeOutOfService(c)
	}
	now.Write(c)
	c.ResizeAs(resizeManager(s.Revision))
	record.WriteState(c, s)
}

// recordContainer records the container's image ID and container ID before its image changes. While an earlier change
// is on its way nothing is recorded: the image in between may replace the shown one. A container that does not run has
// no ID worth recording: its next restart, of the old image, has another one.
func recordContainer(s *record.State, c *action.PodChange, name string) {
	entry := record.ContainerStatus{ContainerID: new(string)}
	_, changedBefore := s.LastContainerStatuses[name]
	arrived := completion.Observed(c.Pod) && (!changedBefore || completion.AwaitImage(c.Pod, s, name, c.Now.Time) == nil)
	if status := running.Status(c.Pod, name); status != nil && arrived {
		entry.ImageID = status.ImageID
		if status.State.Running != nil {
			*entry.ContainerID = status.ContainerID
		}
	}
	if s.LastContainerStatuses == nil {
		s.LastContainerStatuses = map[string]record.ContainerStatus{}
	}
	s.LastContainerStatuses[name] = entry
}

// recordResized records in the state, as containers with raised limits, the containers with a resize that is written
// and not yet in the state. It leaves out containers that run with all the resources that they are to get: this is
// unknown of a container that does not run.
func recordResized(s *record.State, pod *corev1.Pod, resized sets.Set[string]) {
	for _, name := range sets.List(resized) {
		status := running.Status(pod, name)
		shown := running.Is(pod, name) && status.Resources != nil
		if !shown || quantity.RaisedLimit(*status.Resources, running.Container(pod, name).Resources) != "" {
			s.RaisedLimits = append(s.RaisedLimits, name)
		}
	}
}

// recordRaisedLimits records the containers with limits that are raised now, and those that may lack theirs. A status repeats
// the spec. A container has its limits for sure only if it ran when they were written and is restarted now, which waits for
// them: a run that began in between is inside the old limit of the pod. The moment at which an earlier update raised
// them is not known here.
func recordRaisedLimits(s *record.State, pod *corev1.Pod, now record.Changes) {
	raised := sets.New[string]()
	restarted := now.Restarted()
	for _, name := range s.RaisedLimits {
		c := running.Container(pod, name)
		has := c != nil && restarted.Has(name) && completion.AwaitResources(pod, c) == nil
		if c != nil && (!has || !s.Touched(name) || running.Since(pod, name, s.WrittenAt(name))) {
			raised.Insert(name)
		}
	}
	for name, r := range now.Resources {
		if raisesLimit(pod, name, r) != "" {
			raised.Insert(name)
		}
	}
	s.RaisedLimits = sets.List(raised)
}
