package inplace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/inplace/annotation"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
)

// abandoned is a pod whose container app is to be restarted, as it is or for its environment, by an agent that has told of
// it once and has gone since.
func abandoned(t *testing.T, env bool) *corev1.Pod {
	t.Helper()
	v1 := revisionOf("w-1", variant(templateOf("app"), func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{"cfg": "1"}
		t.Spec.Containers[0].Env = []corev1.EnvVar{envFrom("CFG", "cfg")}
	}))
	v2 := revisionOf("w-2", variant(v1.Template, func(t *corev1.PodTemplateSpec) {
		if env {
			t.Annotations["cfg"] = "2"
		} else {
			t.Annotations[contract.RestartInPlaceAnnotation] = "1"
		}
	}))
	pod := runningPod(v1.Template, "w-1")
	told := agentreport.RuntimeContainersMeta{Containers: []agentreport.RuntimeContainer{{
		Name: "app", ContainerID: "app-0", Hashes: agentreport.ContainerHashes{ExtractedEnvFromMetadataHash: agentreport.ExpectedEnvHash(&pod.Spec.Containers[0], pod)},
	}}}
	pod.Annotations[contract.RuntimeContainersMetaAnnotation] = annotation.Encode(told)
	pod = answered(written(t, begin(t, pod, v1, v2, 0, at(0))), at(0))
	require.Equal(t, corev1.ConditionFalse, gateOf(pod))
	return pod
}

func TestAnAgentThatHasGoneIsMissed(t *testing.T) {
	for _, env := range []bool{false, true} {
		pod := abandoned(t, env)
		_, p, _ := refresh(t, pod, at(time.Minute))
		assert.Equal(t, completion.ReasonContainer, p.Reason)
		assert.Equal(t, time.Minute, p.RequeueAfter)
		assert.False(t, AgentMissing(pod, at(time.Minute).Time, allGates))

		_, p, writes := refresh(t, pod, at(2*time.Minute))
		assert.Equal(t, completion.ReasonNodeAgentMissing, p.Reason)
		assert.Equal(t, "the node agent has not restarted container app within 2m0s", p.Message)
		assert.Empty(t, writes)
		assert.True(t, AgentMissing(pod, at(2*time.Minute).Time, allGates))

		pod.Spec.TerminationGracePeriodSeconds = new(int64(600))
		assert.False(t, AgentMissing(pod, at(10*time.Minute).Time, allGates), "the container may still be stopping")
		assert.True(t, AgentMissing(pod, at(11*time.Minute).Time, allGates))
	}
}

func TestPodsServeAsTheyAreWithoutAnAgent(t *testing.T) {
	for _, env := range []bool{false, true} {
		pod := abandoned(t, env)
		c := action.NewPodChange(pod, at(2*time.Minute))
		Refresh(c, allGates)
		ServeAsIs(c, allGates)
		pod = answered(written(t, c), at(2*time.Minute))
		assert.Equal(t, corev1.ConditionTrue, gateOf(pod))

		_, p, writes := refresh(t, pod, at(time.Hour))
		assert.False(t, p.Complete, "it is told of for as long as the container runs")
		assert.True(t, p.AgentMissing)
		assert.Equal(t, completion.ReasonNodeAgentMissing, p.Reason)
		assert.Equal(t, "the pod serves, but the node agent has not restarted container app", p.Message)
		assert.Empty(t, writes)

		restarted(pod, "app", "app-1")
		_, p, _ = refresh(t, pod, at(2*time.Hour))
		assert.True(t, p.Complete)
	}
}
