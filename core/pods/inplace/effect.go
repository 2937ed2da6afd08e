package inplace

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/inplace/quantity"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// The causes for which an update restarts a container.
const (
	CauseImage       = "image"
	CauseResources   = "resources"
	CauseEnvironment = "environment"
	CauseRestart     = "restart annotation"
)

// Effect is the effect of an update in place on a running pod of the older revision.
type Effect struct {
	// Restarts are the containers that stop and start again, native sidecars first.
	Restarts []Restart
	// Resized are the containers that get other cpu or memory and run on.
	Resized []string
	// ByAgent is true if the node agent has to restart one of the containers.
	ByAgent bool
}

// Restart is a container that an update restarts.
type Restart struct {
	Container string
	// Causes are one or more of the Cause values.
	Causes []string
}

// Effect returns the effect of the update on a pod whose containers run as the template of the older revision has them.
func (u *Update) Effect(from *corev1.PodTemplateSpec) Effect {
	pod := asMade(from)
	ch, _, _ := u.forPod(pod, record.Prior{})
	effect := Effect{ByAgent: ch.ByAgent().Len() > 0}
	for _, c := range podspec.LongRunning(&pod.Spec) {
		switch _, resized := ch.Resources[c.Name]; {
		case ch.Stops(pod, c.Name):
			effect.Restarts = append(effect.Restarts, Restart{Container: c.Name, Causes: causes(ch, pod, c)})
		case resized:
			effect.Resized = append(effect.Resized, c.Name)
		}
	}
	return effect
}

// asMade is a running pod that nothing has changed since it was made from the template.
func asMade(t *corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	status := func(containers []corev1.Container) (all []corev1.ContainerStatus) {
		for i := range containers {
			name := containers[i].Name
			all = append(all, corev1.ContainerStatus{
				Name:        name,
				ContainerID: name,
				State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			})
		}
		return all
	}
	pod.Status.ContainerStatuses = status(pod.Spec.Containers)
	pod.Status.InitContainerStatuses = status(pod.Spec.InitContainers)
	return pod
}

// causes are the reasons why the changes restart the container.
func causes(ch record.Changes, pod *corev1.Pod, c *corev1.Container) []string {
	_, image := ch.Images[c.Name]
	_, environment := ch.Metadata[c.Name]
	resize, resized := ch.Resources[c.Name]
	var causes []string
	for _, cause := range []struct {
		name string
		is   bool
	}{
		{CauseImage, image},
		{CauseResources, resized && quantity.Restarts(running.Container(pod, c.Name), resize)},
		{CauseEnvironment, environment},
		{CauseRestart, ch.Restarts.Has(c.Name)},
	} {
		if cause.is {
			causes = append(causes, cause.name)
		}
	}
	return causes
}
