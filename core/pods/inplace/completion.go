package inplace

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// How a container is known to run its wanted image.
//
// Wanted is proof that neither hangs nor comes early, from a status that may be late and that names images as the
// runtime likes. The kubelet replaces a container whenever the text of its image changes, and reports by
// observedGeneration which spec a status is about. So nothing is concluded before observedGeneration has reached the
// pod's generation (where it is reported). After that
//
//  1. the recorded container is still shown: not replaced yet, whatever its image is called;
//  2. another one is shown, and its image ID differs from the recorded one: it can only be the
//     wanted one, because an image ID is recorded only when no other change was on its way;
//  3. another one is shown with a name or digest that is the wanted one, or the node agent has found
//     the wanted spec's hash on it: it is the wanted one;
//  4. another one is shown with the old image ID under another name: either two names of one image, or the old
//     container has crashed and was restarted just before the kubelet saw the change. The latter is replaced at once,
//     so that a container that is ready after settleTime is the former. One that is not ready is given unsureTime: it
//     may crash again, and its status stays as it is if its node fails before the kubelet replaces it. One that is down
//     and does not crash waits for its wanted image, however long that cannot be pulled.
//
// Of a native sidecar that runs nothing is concluded before it has passed its startup probe either: the kubelet does not
// look at its image until then, and may still replace it, or keep it if the image changes back.
//
// Without a recorded container ID there is no old container to compare with: the old one was down, or an earlier change
// was on its way. Rules 2 and 3 hold for a container that runs; rule 4 waits for unsureTime, because restarts of the
// old image and slow pulls of the one in between are likely then. Nor do states that OpenKruise wrote name a container:
// with them an image ID that differs or a wanted name is proof, and a container that still runs after unsureTime, if
// the kubelet reports that it has observed the spec. So no naming can block an update permanently.
const (
	settleTime = 10 * time.Second
	// readTime is how long after a write to the metadata a container may still be started with the metadata that the
	// kubelet saw before. This happens to a container that has crashed and has no successor in the status yet. The node
	// agent takes no less for a restart.
	readTime   = 5 * time.Second
	unsureTime = 2 * time.Minute
)

// awaited has the changes that were written to a pod and are not done: the containers, by kind of change.
type awaited struct {
	images, env, resources, restarts []string

	first  *Progress
	resize *Progress        // the first of the resizes that are not under way: nothing waits for them
	later  sets.Set[string] // the containers that a later batch changes again
}

// awaitedOf checks all that was written so far. While condition InPlaceUpdateReady is True, images, restarts and
// environments are not looked at: it becomes True only when they are done, and the proof may be gone by now. But
// ServeAsIs leaves the record of restarts that are not. A container that a later batch changes again is on its way, but
// nothing waits for it.
func awaitedOf(c *action.PodChange, s *State, o Options) awaited {
	a := awaited{later: s.next().containers()}
	if !isInService(c) {
		for _, name := range sets.List(sets.KeySet(s.LastContainerStatuses)) {
			a.add(&a.images, name, awaitImage(c.Pod, s, name, c.Now.Time))
		}
		for _, name := range sets.List(sets.KeySet(s.Restarts)) {
			a.add(&a.restarts, name, s.awaitRestart(c.Pod, name, c.Now.Time))
		}
	} else {
		a.first = s.awaitedAsIs(c.Pod)
	}
	for _, container := range podspec.LongRunning(&c.Pod.Spec) {
		if o.EnvFromMetadata && !isInService(c) {
			a.addEnv(c, s, container)
		}
		if s.touched(container.Name) && s.UpdateResources && o.Resize {
			a.addResources(c.Pod, container)
		}
	}
	if a.first == nil {
		a.first = s.resizeHeld(c)
	}
	return a
}

// addResources adds the wait for the container's resize. Later changes, also of this container, wait for a resize under
// way. Resources that the node does not give now block nothing.
func (a *awaited) addResources(pod *corev1.Pod, container *corev1.Container) {
	p := awaitResources(pod, container)
	if p == nil {
		return
	}
	a.resources = append(a.resources, container.Name)
	switch {
	case resizeUnderWay(pod, container):
		if a.first == nil {
			a.first = p
		}
	case a.resize == nil:
		a.resize = p
	}
}

func (a *awaited) add(list *[]string, name string, p *Progress) {
	if p == nil {
		return
	}
	*list = append(*list, name)
	if !a.later.Has(name) && a.first == nil {
		a.first = p
	}
}

func (a *awaited) addEnv(c *action.PodChange, s *State, container *corev1.Container) {
	if s.touched(container.Name) && s.UpdateEnvFromMetadata {
		a.add(&a.env, container.Name, s.awaitEnv(c, container))
	} else if p := s.awaitOtherEnv(c, container); p != nil && a.first == nil {
		a.first = p
	}
}

// containers leaves restarts out: whether they continue depends on the template.
func (a awaited) containers() sets.Set[string] {
	return sets.New(slices.Concat(a.images, a.env, a.resources)...)
}

// interrupts reports whether the pod cannot serve as it is: something is awaited, or a container, even one that a later
// batch changes again, does not run with the written values.
func (a awaited) interrupts() bool {
	return a.first != nil || len(a.images)+len(a.env)+len(a.restarts) > 0
}

// observed reports whether the status is about the present spec, as far as the kubelet reports.
func observed(pod *corev1.Pod) bool {
	return pod.Status.ObservedGeneration == 0 || pod.Status.ObservedGeneration >= pod.Generation
}

// awaitImage is the wait for the container's image change, nil when it is done.
func awaitImage(pod *corev1.Pod, s *State, name string, now time.Time) *Progress {
	spec, status, last := containerOf(pod, name), statusOf(pod, name), s.LastContainerStatuses[name]
	switch {
	case spec == nil:
		return nil
	case !observed(pod):
		return waitFor(ReasonKubelet, "the kubelet has not observed the current spec of the pod yet")
	case status == nil || status.ContainerID == "":
		return waitFor(ReasonContainer, "container %s has not been started yet", name)
	case sidecarOf(pod, name) != nil && startsUp(status):
		return waitFor(ReasonContainer, "container %s has yet to pass its startup probe", name)
	}
	wanted := runs(status, spec.Image) || startedFrom(pod, spec, status)
	if last.ContainerID == nil {
		return s.awaitImageWithoutID(pod, spec, status, wanted, now)
	}
	sure := *last.ContainerID != ""
	switch {
	case sure && *last.ContainerID == status.ContainerID:
		return waitFor(ReasonContainer, "container %s has not been restarted with image %s yet", name, spec.Image)
	case !sure && !isStarted(status):
		return waitFor(ReasonContainer, "container %s is not running with image %s yet", name, spec.Image)
	case wanted, otherImage(last.ImageID, status.ImageID):
		return nil
	case !isStarted(status):
		return waitFor(ReasonContainer, "container %s is not running with image %s yet", name, spec.Image)
	}
	return s.awaitProof(spec, status, sure, now)
}

// awaitImageWithoutID is awaitImage for a state that OpenKruise wrote, which names no container.
func (s *State) awaitImageWithoutID(pod *corev1.Pod, spec *corev1.Container, status *corev1.ContainerStatus, wanted bool, now time.Time) *Progress {
	switch {
	case wanted || !sameImageID(status.ImageID, s.LastContainerStatuses[spec.Name].ImageID):
		return nil
	case pod.Status.ObservedGeneration > 0 && status.State.Running != nil:
		return s.awaitProof(spec, status, false, now)
	}
	return waitFor(ReasonContainer, "container %s has not been restarted with image %s yet", spec.Name, spec.Image)
}

// otherImage reports whether both image IDs are known and differ.
func otherImage(recorded, shown string) bool {
	return recorded != "" && shown != "" && !sameImageID(shown, recorded)
}

// awaitProof is the wait of rule 4, nil when it is over.
func (s *State) awaitProof(spec *corev1.Container, status *corev1.ContainerStatus, sure bool, now time.Time) *Progress {
	wait := unsureTime
	if sure && status.Ready {
		wait = settleTime
	}
	left := s.writtenAt(spec.Name).Add(wait).Sub(now)
	if left <= 0 {
		return nil
	}
	p := waitFor(ReasonContainer, "container %s reports image %s instead of %s", spec.Name, status.Image, spec.Image)
	p.RequeueAfter = left
	return p
}

// writtenAt is the moment of the last batch with the container.
func (s *State) writtenAt(container string) time.Time {
	for _, batch := range slices.Backward(s.ContainerBatchesRecord) {
		if slices.Contains(batch.Containers, container) {
			return batch.Timestamp.Time
		}
	}
	return s.UpdateTimestamp.Time
}

// isStarted reports whether the shown container is one that the kubelet keeps running.
func isStarted(s *corev1.ContainerStatus) bool {
	return s.State.Running != nil || s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
}

// startsUp reports whether the container runs and has yet to pass its startup probe, as far as the kubelet reports.
func startsUp(s *corev1.ContainerStatus) bool {
	return s.State.Running != nil && !s.Ready && s.Started != nil && !*s.Started
}

// startedFrom reports whether the node agent found the hash of the present spec on the shown container.
func startedFrom(pod *corev1.Pod, spec *corev1.Container, status *corev1.ContainerStatus) bool {
	c := runtimeContainer(pod, status)
	if c == nil {
		return false
	}
	hashes := plainHashes(spec)
	return slices.Contains(hashes[:], c.Hashes.PlainHash)
}

// runtimeContainer is the node agent's report of the shown container, nil when there is none.
func runtimeContainer(pod *corev1.Pod, status *corev1.ContainerStatus) *RuntimeContainer {
	meta, err := ReadRuntimeContainersMeta(pod)
	if err != nil || meta == nil || status == nil || status.ContainerID == "" {
		return nil
	}
	for i := range meta.Containers {
		if meta.Containers[i].Name == status.Name && meta.Containers[i].ContainerID == status.ContainerID {
			return &meta.Containers[i]
		}
	}
	return nil
}

// touched reports whether the container is one of the batches so far. An update without a batch has changed none: it is
// only planned, its plan was dropped, or its first batch waits for the restart of a container.
func (s *State) touched(container string) bool {
	return slices.ContainsFunc(s.ContainerBatchesRecord, func(b Batch) bool { return slices.Contains(b.Containers, container) })
}

// awaitEnv is the wait for the container's environment, nil when the environment matches the present metadata.
func (s *State) awaitEnv(c *action.PodChange, container *corev1.Container) *Progress {
	if !ReadsMetadata(container) {
		return nil
	}
	read, known := startedWith(c.Pod, container.Name)
	switch {
	case !known:
		return s.awaitAgent(c.Pod, container.Name, c.Now.Time,
			waitFor(ReasonNodeAgentMissing, "the node agent has not reported container %s yet", container.Name))
	case read != ExpectedEnvHash(container, c.Pod):
		return s.awaitAgent(c.Pod, container.Name, c.Now.Time,
			waitFor(ReasonContainer, "container %s has not been restarted with its new environment yet", container.Name))
	}
	left := s.writtenAt(container.Name).Add(readTime).Sub(c.Now.Time)
	if left <= 0 {
		return nil
	}
	p := waitFor(ReasonContainer, "container %s may still have the old environment; it is checked again within %s", container.Name, readTime)
	p.RequeueAfter = left
	return p
}

// awaitOtherEnv is awaitEnv for a container with an environment that the update leaves alone. If another client has
// changed metadata that it reads, the node agent restarts it while the pod is out of service. The update waits for that
// for a limited time, because it can do without a node agent.
func (s *State) awaitOtherEnv(c *action.PodChange, container *corev1.Container) *Progress {
	if _, known := startedWith(c.Pod, container.Name); !known || !podstate.HasReadinessGate(c.Pod, contract.InPlaceUpdateReady) {
		return nil
	}
	left := s.lastWrite().Add(unsureTime).Sub(c.Now.Time)
	if left <= 0 || hasRead(Metadata{}, container, c.Pod) {
		return nil
	}
	p := waitFor(ReasonContainer, "container %s has not been restarted with its new environment yet", container.Name)
	p.RequeueAfter = left
	return p
}

// lastWrite is the moment of the last batch.
func (s *State) lastWrite() time.Time {
	if n := len(s.ContainerBatchesRecord); n > 0 {
		return s.ContainerBatchesRecord[n-1].Timestamp.Time
	}
	return s.UpdateTimestamp.Time
}

// awaitResources is the wait for the container's resources, nil when it runs with the resources of the spec. The status
// of a container that does not run repeats the resources that it is to get.
func awaitResources(pod *corev1.Pod, c *corev1.Container) *Progress {
	want, status := effective(c.Resources), statusOf(pod, c.Name)
	switch {
	case noQuantities(want):
		return nil
	case !observed(pod):
		return waitFor(ReasonKubelet, "the kubelet has not observed the current spec of the pod yet")
	case isRunning(pod, c.Name) && status.Resources != nil && noQuantities(missingQuantities(*status.Resources, want)):
		return nil
	}
	p := waitFor(ReasonResize, "container %s has yet to get its resources", c.Name)
	if !isRunning(pod, c.Name) {
		p.Message = fmt.Sprintf("container %s has yet to run with its resources", c.Name)
	}
	said := trueCondition(pod, corev1.PodResizePending)
	if said == nil {
		said = trueCondition(pod, corev1.PodResizeInProgress)
	}
	if said != nil {
		p.Reason += said.Reason
		if said.Message != "" {
			p.Message += ": " + said.Message
		}
	}
	return p
}

// resizedBefore names the containers that do not have the resources of their spec yet, if the changes leave these
// resources as they are.
func resizedBefore(pod *corev1.Pod, containers sets.Set[string], ch changes) sets.Set[string] {
	names := sets.New[string]()
	for name := range containers {
		_, written := ch.resources[name]
		if c := containerOf(pod, name); c != nil && !written && awaitResources(pod, c) != nil {
			names.Insert(name)
		}
	}
	return names
}

// restartsToCome reports whether the kubelet will restart one of the resized containers.
func restartsToCome(pod *corev1.Pod, resized sets.Set[string]) bool {
	for name := range resized {
		c, status, has := containerOf(pod, name), statusOf(pod, name), corev1.ResourceRequirements{}
		if c == nil {
			continue // the pod's record names one that it does not have
		}
		if status != nil && status.Resources != nil {
			has = *status.Resources
		}
		if resizeRestarts(c, missingQuantities(has, effective(c.Resources))) {
			return true
		}
	}
	return false
}

func trueCondition(pod *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	if c := podstate.Condition(pod, t); c != nil && c.Status == corev1.ConditionTrue {
		return c
	}
	return nil
}
