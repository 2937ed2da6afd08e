package cloneset

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"

	"github.com/flotilla-project/flotilla/test/story"
)

// starved has the application hold more memory than its limit. It is ready when it holds it.
func starved(set *v1beta1.CloneSet) {
	c := &set.Spec.Template.Spec.Containers[0]
	c.Args = []string{"-memory=48"}
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
	limits("200m", "32Mi")(set)
}

// killedForMemory waits until the set's container has been killed twice for want of memory, so that its kubelet pauses before it
// starts it anew, and returns the pod.
func killedForMemory(t *testing.T, set *v1beta1.CloneSet) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	story.Eventually(t, "a container that is killed again and again", func(context.Context) error {
		pods := podsOf(t, set)
		for i := range pods {
			for _, s := range pods[i].Status.ContainerStatuses {
				if end := s.LastTerminationState.Terminated; s.RestartCount > 0 && s.State.Running == nil && end != nil && end.Reason == "OOMKilled" {
					found = &pods[i]
					return nil
				}
			}
		}
		return story.Want(false, "pods are %+v", pods)
	})
	return found
}

// A pod keeps the memory that it was started with: a container that is killed for want of memory gets a higher limit by a new
// pod. Where the set may make none, it says so and leaves the pod alone, and the user's deletion ends the loop.
func TestAHigherLimitEndsACrashLoop(t *testing.T) {
	t.Parallel()
	for _, policy := range []v1beta1.PodUpdatePolicy{v1beta1.InPlaceIfPossible, v1beta1.InPlaceOnly} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			set := newSet(world.Namespace(t), 1, starved, func(s *v1beta1.CloneSet) {
				s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = policy
			})
			require.NoError(t, world.Client.Create(t.Context(), set))
			before := killedForMemory(t, set)
			edit(t, set, limits("200m", "128Mi"))
			if policy == v1beta1.InPlaceOnly && waitsOrServes(t, set) {
				assert.Contains(t, story.Condition(set, "Ready").Message, "NotInPlace "+before.Name)
				assert.Contains(t, story.Condition(set, "Ready").Message, "container main: resources.limits.memory: ")
				require.NoError(t, world.Client.Delete(t.Context(), before), "it is still there")
			}
			settles(t, set)

			pods := story.Active(podsOf(t, set))
			require.Len(t, pods, 1)
			status := pods[0].Status.ContainerStatuses[0]
			assert.Equal(t, "128Mi", status.Resources.Limits.Memory().String())
			if pods[0].UID == before.UID { // its kubelet was just about to run it, and raised the limit of a container that ran
				assert.Greater(t, status.RestartCount, before.Status.ContainerStatuses[0].RestartCount)
			} else {
				assert.Zero(t, status.RestartCount)
			}
		})
	}
}

// waitsOrServes waits until the set says that its pod cannot get the limit in place, or has got it while its container ran
// for a moment. It reports which.
func waitsOrServes(t *testing.T, set *v1beta1.CloneSet) (waits bool) {
	t.Helper()
	story.Reaches(t, world, set, "a wait or an end", func(set *v1beta1.CloneSet) error {
		c := story.Condition(set, "Ready")
		waits = c.Reason == v1beta1.ReasonNotInPlace
		return story.Want(set.Status.ObservedGeneration == set.Generation && (waits || c.Status == metav1.ConditionTrue), "condition is %+v", c)
	})
	return waits
}
