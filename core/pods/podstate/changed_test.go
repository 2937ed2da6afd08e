package podstate_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

func TestChanged(t *testing.T) {
	settled := []gen.PodOption{gen.Label("app", "web"), gen.Ready(second(10)), gen.Condition(contract.KruisePodReady, corev1.ConditionTrue, second(10))}
	updating := append(slices.Clip(settled), gen.Lifecycle(contract.LifecycleUpdating))
	held := append(slices.Clip(settled), gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionFalse, second(10)))
	resized := append(slices.Clip(settled), gen.Annotation(contract.InPlaceUpdateStateAnnotation, "{}"))
	resources := gen.Change(func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{} })
	newContainer := gen.Change(func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].ContainerID = "containerd://new" })
	sidecar := gen.Change(func(pod *corev1.Pod) {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", ContainerID: "containerd://new"}}
	})
	observed := gen.Change(func(pod *corev1.Pod) { pod.Status.ObservedGeneration++ })
	resizing := gen.Condition(corev1.PodResizeInProgress, corev1.ConditionTrue, second(20))
	cases := []struct {
		name   string
		pod    []gen.PodOption
		change gen.PodOption
		want   bool
	}{
		{"nothing", settled, gen.Change(func(*corev1.Pod) {}), false},
		{"only its version", settled, gen.Change(func(pod *corev1.Pod) { pod.ResourceVersion = "2" }), false},
		{"another pod of the name", settled, gen.Change(func(pod *corev1.Pod) { pod.UID = "other" }), true},
		{"a spec", settled, gen.Change(func(pod *corev1.Pod) { pod.Generation++ }), true},
		{"the begin of deletion", settled, gen.Terminating(), true},
		{"a node", nil, gen.OnNode("n2"), true},
		{"a phase", settled, gen.Phase(corev1.PodFailed), true},
		{"a label", settled, gen.Label("app", "other"), true},
		{"an annotation", settled, gen.DeletionCost("1"), true},
		{"a finalizer", settled, gen.Finalizer("example.io/hook"), true},
		{"a controller", settled, gen.OwnedBy(gen.Pod("owner")), true},
		{"readiness", settled, gen.NotReady(second(10)), true},
		{"the time of readiness", settled, gen.Ready(second(20)), true},
		{"a condition of readiness that is new", nil, gen.Condition(corev1.PodReady, corev1.ConditionFalse, second(10)), true},
		{"a hold by an update", settled, gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionFalse, second(20)), true},
		{"who holds it not ready", settled, gen.Change(func(pod *corev1.Pod) {
			podstate.Condition(pod, contract.KruisePodReady).Message = "[]"
		}), true},
		{"the message of readiness", settled, gen.Change(func(pod *corev1.Pod) {
			podstate.Condition(pod, corev1.PodReady).Message = "containers"
		}), false},
		{"the image of a settled pod", settled, gen.Change(func(pod *corev1.Pod) { pod.Status.ContainerStatuses[0].Image = "other" }), false},
		{"the resources of a settled pod", settled, resources, false},
		{"a container of a settled pod", settled, newContainer, true},
		{"a restart of a settled pod", settled, gen.Restarts(1), true},
		{"the resources of a pod that was updated", resized, resources, true},
		{"a condition of a pod that was updated", resized, resizing, true},
		{"a native sidecar of a pod that was updated", resized, sidecar, true},
		{"a native sidecar of a settled pod", settled, sidecar, false},
		{"a container of a pod that updates", updating, newContainer, true},
		{"a container of a pod that is held", held, newContainer, true},
		{"the generation seen for a settled pod", settled, observed, false},
		{"the generation seen for a pod that updates", updating, observed, true},
		{"a condition of a settled pod", settled, resizing, false},
		{"a condition of a pod that updates", updating, resizing, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			old := gen.Pod("web-1", c.pod...)
			now := gen.Pod("web-1", c.pod...)
			c.change(now)
			assert.Equal(t, c.want, podstate.Changed(old, now))
			if c.want {
				assert.True(t, podstate.Changed(now, old), "and back")
			}
		})
	}
}
