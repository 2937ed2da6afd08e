package completion

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/diff"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// Awaited has the changes that were written to a pod and are not done: the containers, by kind of change.
type Awaited struct {
	Images, Env, Resources, Restarts []string

	// First is the first wait that others wait for, nil when there is none.
	First *Progress
	// Resize is the first of the resizes that are not under way: nothing waits for them.
	Resize *Progress

	later sets.Set[string] // the containers that a later batch changes again
}

// Of checks all that was written so far. While condition InPlaceUpdateReady is True, images, restarts and
// environments are not looked at: it becomes True only when they are done, and the proof may be gone by now. But
// ServeAsIs leaves the record of restarts that are not. A container that a later batch changes again is on its way, but
// nothing waits for it.
func Of(c *action.PodChange, s *record.State, o diff.Options) Awaited {
	a := Awaited{later: s.Next().Containers()}
	if !record.IsInService(c) {
		for _, name := range sets.List(sets.KeySet(s.LastContainerStatuses)) {
			a.add(&a.Images, name, AwaitImage(c.Pod, s, name, c.Now.Time))
		}
		for _, name := range sets.List(sets.KeySet(s.Restarts)) {
			a.add(&a.Restarts, name, awaitRestart(s, c.Pod, name, c.Now.Time))
		}
	} else {
		a.First = awaitedAsIs(s, c.Pod)
	}
	for _, container := range podspec.LongRunning(&c.Pod.Spec) {
		if o.EnvFromMetadata && !record.IsInService(c) {
			a.addEnv(c, s, container)
		}
		if s.Touched(container.Name) && s.UpdateResources && o.Resize {
			a.addResources(c.Pod, container)
		}
	}
	if a.First == nil {
		a.First = resizeHeld(s, c)
	}
	return a
}

// addResources adds the wait for the container's resize. Later changes, also of this container, wait for a resize under
// way. Resources that the node does not give now block nothing.
func (a *Awaited) addResources(pod *corev1.Pod, container *corev1.Container) {
	p := AwaitResources(pod, container)
	if p == nil {
		return
	}
	a.Resources = append(a.Resources, container.Name)
	switch {
	case ResizeUnderWay(pod, container):
		if a.First == nil {
			a.First = p
		}
	case a.Resize == nil:
		a.Resize = p
	}
}

func (a *Awaited) add(list *[]string, name string, p *Progress) {
	if p == nil {
		return
	}
	*list = append(*list, name)
	if !a.later.Has(name) && a.First == nil {
		a.First = p
	}
}

func (a *Awaited) addEnv(c *action.PodChange, s *record.State, container *corev1.Container) {
	if s.Touched(container.Name) && s.UpdateEnvFromMetadata {
		a.add(&a.Env, container.Name, awaitEnv(s, c, container))
	} else if p := awaitOtherEnv(s, c, container); p != nil && a.First == nil {
		a.First = p
	}
}

// Containers leaves restarts out: whether they continue depends on the template.
func (a Awaited) Containers() sets.Set[string] {
	return sets.New(slices.Concat(a.Images, a.Env, a.Resources)...)
}

// Interrupts reports whether the pod cannot serve as it is: something is awaited, or a container, even one that a later
// batch changes again, does not run with the written values.
func (a Awaited) Interrupts() bool {
	return a.First != nil || len(a.Images)+len(a.Env)+len(a.Restarts) > 0
}
