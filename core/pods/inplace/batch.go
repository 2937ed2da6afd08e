package inplace

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

// chooseBatch picks the containers that go first, among those with changes and those that are on their way already: of
// the native sidecars that restart one after the other, as the kubelet starts them, and then the containers that have
// no launch priority or the highest one. One key is written once, so containers that read a changed key of a chosen one
// come along. A sidecar that is only resized has no turn of its own: a container may have to release the resources that
// it gets.
func chooseBatch(c *action.PodChange, s *State, ch changes, onTheirWay sets.Set[string]) sets.Set[string] {
	for i := range c.Pod.Spec.InitContainers {
		name := c.Pod.Spec.InitContainers[i].Name
		if sidecarOf(c.Pod, name) != nil && (ch.stops(c.Pod, name) || onTheirWay.Has(name) && s.restartAwaited(c, name) != nil) {
			return ch.withReadersOfTheSameKeys(sets.New(name))
		}
	}
	return ch.withReadersOfTheSameKeys(highestPriority(c.Pod, ch.containers().Union(s.withoutDown(c, onTheirWay))))
}

// withoutDown leaves out containers that are down: others would wait for them in vain.
func (s *State) withoutDown(c *action.PodChange, names sets.Set[string]) sets.Set[string] {
	up := sets.New[string]()
	for name := range names {
		if !s.isDown(c, name) {
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
		priority, ok := launchPriority(containerOf(pod, name))
		switch {
		case !ok:
			chosen.Insert(name)
		case !found || priority > top:
			top, found, highest = priority, true, sets.New(name)
		case priority == top:
			highest.Insert(name)
		}
	}
	return chosen.Union(highest)
}

func (ch changes) withReadersOfTheSameKeys(chosen sets.Set[string]) sets.Set[string] {
	for grown := true; grown; {
		grown = false
		for name, m := range ch.metadata {
			if !chosen.Has(name) && sharesKeyWithAny(m, ch, chosen) {
				chosen.Insert(name)
				grown = true
			}
		}
	}
	return chosen
}

func sharesKeyWithAny(m Metadata, ch changes, chosen sets.Set[string]) bool {
	for name := range chosen {
		if m.sharesKey(ch.metadata[name]) {
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
	status := statusOf(pod, name)
	switch {
	case containerOf(pod, name) == nil:
		return true
	case status == nil:
		return false
	}
	return status.Ready || sidecarOf(pod, name) != nil && status.State.Running != nil && !startsUp(status)
}

// batch is the next batch of changes: now is written at once, behind has to wait, and later comes after the batch and
// includes behind.
type batch struct {
	chosen, onTheirWay sets.Set[string]
	now, behind, later changes
	begun              bool // it is the rest of the batch that was written last
}

// divide finds the next batch of the changes. Changes that wait for its resizes, and resizes that wait, come with the
// next write. That write requires no ready container: it is the rest of this batch. The containers on their way belong
// to it.
func divide(c *action.PodChange, s *State, ch changes, onTheirWay sets.Set[string]) batch {
	chosen := chooseBatch(c, s, ch, onTheirWay)
	rest := s.restOfBatch(ch, chosen)
	begun := rest.Len() > 0
	if begun {
		chosen = rest
	}
	now, later := ch.split(chosen)
	now, held := now.resizesLast(c, s)
	now, behind := now.resizesFirst(c.Pod, onTheirWay)
	behind.add(held)
	later.add(behind)
	return batch{chosen: chosen, onTheirWay: onTheirWay, now: now, behind: behind, later: later, begun: begun}
}

// restOfBatch are the chosen containers with changes left that belong to the batch that was written last. It is empty
// if no such batch is begun.
func (s *State) restOfBatch(left changes, chosen sets.Set[string]) sets.Set[string] {
	n := len(s.ContainerBatchesRecord)
	if n == 0 || !s.hasNext() || s.PreCheckBeforeNext != nil {
		return nil
	}
	recorded := sets.New(s.ContainerBatchesRecord[n-1].Containers...)
	return left.withReadersOfTheSameKeys(recorded.Intersection(chosen).Intersection(left.containers()))
}

// record has one entry for the batch, with the moment of its last write. Resizes of a batch may go ahead of its
// restarts.
func (b batch) record(c *action.PodChange, s *State) {
	if b.now.containers().Union(b.onTheirWay).Len() == 0 {
		return
	}
	names := b.now.containers().Union(b.behind.restarted()).Union(b.onTheirWay)
	if b.begun {
		last := len(s.ContainerBatchesRecord) - 1
		names.Insert(s.ContainerBatchesRecord[last].Containers...)
		s.ContainerBatchesRecord = s.ContainerBatchesRecord[:last]
	}
	s.ContainerBatchesRecord = append(s.ContainerBatchesRecord, Batch{Timestamp: c.Now, Containers: sets.List(names)})
}

// awaitRun names a container that has to run before any part of the batch can be written; nil if a part can be written.
func (b batch) awaitRun(pod *corev1.Pod) *Progress {
	if b.now.containers().Len() > 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(b.behind.resources)) {
		if limit := raisesLimit(pod, name, b.behind.resources[name]); limit != "" {
			return waitFor(ReasonResize, "container %s is not running: its %s limit is raised when it runs", name, limit)
		}
	}
	return nil
}

// interrupts reports whether the pod leaves service for the batch.
func (b batch) interrupts(pod *corev1.Pod) bool {
	return b.now.interrupt(pod) || b.behind.interrupt(pod) || restartsToCome(pod, b.onTheirWay)
}

// start writes the batch and records the batch and the changes left in the state. It is not complete before the
// containers on their way are.
func (b batch) start(c *action.PodChange, s *State) {
	now, later := b.now, b.later
	for name := range now.images {
		s.recordContainer(c, name)
	}
	s.recordRestarts(c.Pod, now.restarts)
	s.recordRaisedLimits(c.Pod, now)
	b.record(c, s)
	s.NextContainerImages, s.NextContainerResources, s.NextContainerRefMetadata = later.images, later.resources, later.metadata
	s.NextContainerRestarts = sets.List(later.restarts)
	s.PreCheckBeforeNext = nil
	if later.containers().Len() > 0 && b.behind.containers().Len() == 0 {
		s.PreCheckBeforeNext = &PreCheck{ContainersRequiredReady: sets.List(b.chosen)}
	}
	if b.interrupts(c.Pod) {
		takeOutOfService(c)
	}
	now.write(c)
	c.ResizeAs(resizeManager(s.Revision))
	writeState(c, s)
}

// recordContainer records the container's image ID and container ID before its image changes. While an earlier change
// is on its way nothing is recorded: the image in between may replace the shown one. A container that does not run has
// no ID worth recording: its next restart, of the old image, has another one.
func (s *State) recordContainer(c *action.PodChange, name string) {
	entry := ContainerStatus{ContainerID: new(string)}
	_, changedBefore := s.LastContainerStatuses[name]
	arrived := observed(c.Pod) && (!changedBefore || awaitImage(c.Pod, s, name, c.Now.Time) == nil)
	if status := statusOf(c.Pod, name); status != nil && arrived {
		entry.ImageID = status.ImageID
		if status.State.Running != nil {
			*entry.ContainerID = status.ContainerID
		}
	}
	if s.LastContainerStatuses == nil {
		s.LastContainerStatuses = map[string]ContainerStatus{}
	}
	s.LastContainerStatuses[name] = entry
}

// recordResized records in the state, as containers with raised limits, the containers with a resize that is written
// and not yet in the state. It leaves out containers that run with all the resources that they are to get: this is
// unknown of a container that does not run.
func (s *State) recordResized(pod *corev1.Pod, resized sets.Set[string]) {
	for _, name := range sets.List(resized) {
		status := statusOf(pod, name)
		shown := isRunning(pod, name) && status.Resources != nil
		if !shown || raisedLimit(*status.Resources, containerOf(pod, name).Resources) != "" {
			s.RaisedLimits = append(s.RaisedLimits, name)
		}
	}
}

// startedSince reports whether the present run of the container began at the moment or later, as far as two clocks show.
func startedSince(pod *corev1.Pod, container string, at time.Time) bool {
	status := statusOf(pod, container)
	return status != nil && status.State.Running != nil && !status.State.Running.StartedAt.Time.Before(at.Truncate(time.Second))
}

// recordRaisedLimits records the containers with limits that are raised now, and those that may lack theirs. A status repeats
// the spec. A container has its limits for sure only if it ran when they were written and is restarted now, which waits for
// them: a run that began in between is inside the old limit of the pod.
func (s *State) recordRaisedLimits(pod *corev1.Pod, now changes) {
	raised, restarted := sets.New[string](), now.restarted()
	for _, name := range s.RaisedLimits {
		c := containerOf(pod, name)
		if c != nil && (!restarted.Has(name) || awaitResources(pod, c) != nil || startedSince(pod, name, s.writtenAt(name))) {
			raised.Insert(name)
		}
	}
	for name, r := range now.resources {
		if raisesLimit(pod, name, r) != "" {
			raised.Insert(name)
		}
	}
	s.RaisedLimits = sets.List(raised)
}
