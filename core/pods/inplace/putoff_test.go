package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
)

// puttingOff are the conditions by which a kubelet says that a pod does not get its resources now.
func puttingOff() map[string]corev1.PodCondition {
	return map[string]corev1.PodCondition{
		"deferred":   {Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred},
		"infeasible": {Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible},
		"failed":     {Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, Reason: corev1.PodReasonError},
	}
}

// What a node does not give holds back no image, whatever container it is of, and the pod serves once the images run.
func TestWhatANodePutsOffHoldsUpNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		resized    []string
		priorities map[string]string
	}{
		"of the same container":           {resized: []string{"main"}},
		"of another container":            {resized: []string{"helper"}},
		"of both":                         {resized: []string{"main", "helper"}},
		"of one with a higher priority":   {resized: []string{"helper"}, priorities: map[string]string{"helper": "p_10", "main": "p_0"}},
		"of both, in order of priorities": {resized: []string{"main", "helper"}, priorities: map[string]string{"helper": "p_10", "main": "p_0"}},
	} {
		for said, condition := range puttingOff() {
			t.Run(name+", "+said, func(t *testing.T) {
				v1 := revisionOf("w-1", variant(templateOf("main", "helper"), func(t *corev1.PodTemplateSpec) {
					for i := range t.Spec.Containers {
						t.Spec.Containers[i].Resources.Requests = quantities("1", "1Gi")
					}
				}))
				v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
					t.Spec.Containers[0].Image = "main:v2"
					for _, name := range tt.resized {
						c := &t.Spec.Containers[0]
						if name == "helper" {
							c = &t.Spec.Containers[1]
						}
						c.Resources.Requests = quantities("2", "1Gi")
					}
				}))
				pod := written(t, begin(t, prioritised(runningPod(v1.Template, "w-1"), tt.priorities), v1, v2, 0, at(0)))
				pod.Status.Conditions = append(pod.Status.Conditions, condition)
				var p completion.Progress
				for i := 1; pod.Spec.Containers[0].Image != "main:v2"; i++ {
					require.Less(t, i, 4, "%+v", p)
					pod.Status.ObservedGeneration = pod.Generation
					pod, p, _ = refresh(t, pod, at(time.Duration(i)*time.Second))
				}
				assert.Equal(t, corev1.ConditionFalse, gateOf(pod))

				restarted(pod, "main", "main-1")
				pod, p, _ = refresh(t, pod, at(time.Minute))
				assert.Equal(t, corev1.ConditionTrue, gateOf(pod))
				assert.True(t, p.Serving)
				assert.False(t, p.Complete, "its resources are told as awaited")
				assert.Equal(t, completion.ReasonResize+condition.Reason, p.Reason)
				_, p, writes := refresh(t, pod, at(240*time.Hour))
				assert.Equal(t, completion.ReasonResize+condition.Reason, p.Reason)
				assert.Empty(t, writes)
				_, p, writes = refresh(t, resized(pod), at(240*time.Hour))
				assert.True(t, p.Complete)
				assert.Empty(t, writes)
			})
		}
	}
}

// A resize that restarts its container takes the pod out of service, and one that the node does not carry out gives it back.
func TestARestartThatTheNodePutsOffDoesNotKeepThePodOutOfService(t *testing.T) {
	for said, condition := range puttingOff() {
		t.Run(said, func(t *testing.T) {
			v1 := revisionOf("w-1", variant(templateOf("a"), func(t *corev1.PodTemplateSpec) {
				t.Spec.Containers[0].Resources.Requests = quantities("1", "")
				t.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
			}))
			v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources.Requests = quantities("2", "") }))
			pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
			assert.Equal(t, corev1.ConditionFalse, gateOf(pod))
			pod.Status.Conditions = append(pod.Status.Conditions, condition)
			pod, p, _ := refresh(t, pod, at(time.Second))
			assert.Equal(t, completion.ReasonKubelet, p.Reason, "the condition may be about another resize")
			assert.Equal(t, corev1.ConditionFalse, gateOf(pod))
			pod.Status.ObservedGeneration = pod.Generation
			pod, p, _ = refresh(t, pod, at(time.Second))
			assert.Equal(t, completion.ReasonResize+condition.Reason, p.Reason)
			assert.True(t, p.Serving)
			assert.Equal(t, corev1.ConditionTrue, gateOf(pod))
		})
	}
}

// While the node carries a resize out, or may do so, the rest waits for it.
func TestAResizeUnderWayIsNotPutOff(t *testing.T) {
	v1, v2 := grown()
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue})
	pod.Status.ObservedGeneration = pod.Generation
	pod, p, writes := refresh(t, pod, at(time.Second))
	assert.Equal(t, completion.ReasonResize, p.Reason)
	assert.False(t, p.Serving)
	assert.Empty(t, writes)
	assert.Equal(t, corev1.ConditionFalse, gateOf(pod))
}

// A pod that is in service while its next containers are refused stays there, whatever its node puts off.
func TestPutIntoServiceDoesNotWaitForWhatTheNodePutsOff(t *testing.T) {
	v1, v2 := grown()
	pod := written(t, begin(t, runningPod(v1.Template, "w-1"), v1, v2, 0, at(0)))
	pod.Status.Conditions = append(pod.Status.Conditions, puttingOff()["deferred"])
	pod.Status.ObservedGeneration = pod.Generation
	c := action.NewPodChange(pod, at(time.Second))
	PutIntoService(c, allGates)
	assert.Equal(t, corev1.ConditionTrue, c.Condition(contract.InPlaceUpdateReady).Status)
}
