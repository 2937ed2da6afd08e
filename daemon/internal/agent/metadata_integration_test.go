package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/pods/inplace/agentreport"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/daemon/internal/agent"
	"github.com/flotilla-project/flotilla/daemon/internal/featuregates"
)

// podOfASet returns a pod of a CloneSet whose container app reads annotation app-config.
func (n *node) podOfASet(name string) *corev1.Pod {
	pod := n.podNamed(name, "proxy", "app")
	pod.Annotations = map[string]string{"app-config": "v1"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: name, UID: types.UID(name), Controller: new(true)}}
	pod.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "APP_CONFIG", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['app-config']"},
	}}}
	return pod
}

// eventuallyReported waits until the annotation names the containers of the pod's status, and returns it by name.
func (n *node) eventuallyReported(pod *corev1.Pod) map[string]agentreport.RuntimeContainer {
	n.t.Helper()
	out := map[string]agentreport.RuntimeContainer{}
	await.Until(n.t, func(c *assert.CollectT) {
		now := n.fresh(pod)
		meta, err := agentreport.Read(now)
		require.NoError(c, err)
		require.NotNil(c, meta)
		require.Len(c, meta.Containers, len(podspec.LongRunning(&now.Spec)))
		clear(out)
		for _, entry := range meta.Containers {
			assert.Equal(c, containerID(now, entry.Name), entry.ContainerID)
			out[entry.Name] = entry
		}
	})
	return out
}

// update changes the annotation that app reads, as an in-place update does, or as a user does.
func (n *node) update(pod *corev1.Pod, value string, ready corev1.ConditionStatus) {
	n.t.Helper()
	pod = n.fresh(pod)
	base := pod.DeepCopy()
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: contract.InPlaceUpdateReady, Status: ready})
	require.NoError(n.t, n.client.Status().Patch(n.t.Context(), pod, client.StrategicMergeFrom(base)))
	base = pod.DeepCopy()
	pod.Annotations["app-config"] = value
	require.NoError(n.t, n.client.Patch(n.t.Context(), pod, client.MergeFrom(base)))
}

func TestAnEnvironmentFromMetadataIsUpdatedInPlace(t *testing.T) {
	n := givenNode(t)
	pod := n.run(n.podOfASet("web"))
	before := n.eventuallyReported(pod)
	assert.Equal(t, uint64(4274367333), before["app"].Hashes.ExtractedEnvFromMetadataHash)
	assert.NotZero(t, before["app"].Hashes.PlainHash)

	n.update(pod, "v2", corev1.ConditionFalse)
	await.Until(t, func(c *assert.CollectT) {
		assert.NotEqual(c, before["app"].Hashes.ExtractedEnvFromMetadataHash, n.eventuallyReported(pod)["app"].Hashes.ExtractedEnvFromMetadataHash)
	})
	after := n.eventuallyReported(pod)
	assert.Equal(t, []string{before["app"].ContainerID}, n.stopped(), "one restart of the one that reads the key")
	assert.Equal(t, before["proxy"], after["proxy"])
	assert.Equal(t, int32(1), after["app"].RestartCount)
	assert.Contains(t, n.eventuallyEvent("web", "Killing").Note, "its in-place update restarts it")
	_, text := n.get("/metrics")
	assert.Contains(t, text, `kruise_agent_container_kills_total{reason="Metadata",result="succeeded"} 1`)
}

func TestAContainerIsRestartedAsItIs(t *testing.T) {
	n := givenNode(t)
	pod := n.run(n.podOfASet("web"))
	before := n.eventuallyReported(pod)
	n.update(pod, "v1", corev1.ConditionFalse)
	base := n.fresh(pod)
	pod = base.DeepCopy()
	pod.Annotations[contract.InPlaceUpdateStateAnnotation] = `{"revision":"web-2","restarts":{"proxy":"` + before["proxy"].ContainerID + `"}}`
	require.NoError(t, n.client.Patch(t.Context(), pod, client.MergeFrom(base)))
	await.Until(t, func(c *assert.CollectT) {
		assert.NotEqual(c, before["proxy"].ContainerID, n.eventuallyReported(pod)["proxy"].ContainerID)
	})
	assert.Equal(t, []string{before["proxy"].ContainerID}, n.stopped())
	assert.Equal(t, before["app"], n.eventuallyReported(pod)["app"])
}

func TestANativeSidecarIsReportedAndRestarted(t *testing.T) {
	n := givenNode(t)
	pod := n.podOfASet("web")
	mesh := corev1.Container{Name: "mesh", Image: "mesh:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Env: pod.Spec.Containers[1].Env}
	pod.Spec.Containers[1].Env = nil
	pod.Spec.InitContainers = []corev1.Container{mesh}
	pod = n.run(pod)
	before := n.eventuallyReported(pod)
	assert.Equal(t, uint64(4274367333), before["mesh"].Hashes.ExtractedEnvFromMetadataHash)
	n.update(pod, "v2", corev1.ConditionFalse)
	await.Until(t, func(c *assert.CollectT) {
		assert.NotEqual(c, before["mesh"].Hashes.ExtractedEnvFromMetadataHash, n.eventuallyReported(pod)["mesh"].Hashes.ExtractedEnvFromMetadataHash)
	})
	assert.Equal(t, []string{before["mesh"].ContainerID}, n.stopped(), "one restart of the one that reads the key")
}

func TestAValueThatAUserChangesRestartsNothing(t *testing.T) {
	n := givenNode(t)
	byHand, updated := n.run(n.podOfASet("by-hand")), n.run(n.podOfASet("updated"))
	n.eventuallyReported(byHand)
	n.eventuallyReported(updated)
	n.update(byHand, "v2", corev1.ConditionTrue)
	n.update(updated, "v2", corev1.ConditionFalse)
	await.Until(t, func(check *assert.CollectT) { assert.NotEmpty(check, n.stopped()) })
	assert.Equal(t, []string{containerID(updated, "app")}, n.stopped(), "the other pod was changed earlier")
}

func TestOtherPodsAreNotReported(t *testing.T) {
	n := givenNode(t)
	other := n.run(n.podNamed("other", "app"))
	n.eventuallyReported(n.run(n.podOfASet("web")))
	assert.NotContains(t, n.fresh(other).Annotations, contract.RuntimeContainersMetaAnnotation)
}

func TestWithoutTheGateNoPodsAreWatched(t *testing.T) {
	gates, _, err := features.Parse(features.Source{Flag: "DaemonWatchingPod=false", Gates: featuregates.All()})
	require.NoError(t, err)
	n := givenNode(t, func(o *agent.Options) { o.FeatureGates = gates })
	n.eventuallyReady()
	_, body := n.get("/readyz")
	assert.NotContains(t, body, "podInformerSynced")
	assert.Contains(t, body, "crrInformerSynced")
}

func TestPodsFromBeforeTheAgentAreReportedOverTime(t *testing.T) {
	n := givenNode(t, func(o *agent.Options) { o.Random = func() float64 { return 0.01 } })
	n.eventuallyReady()
	n.stop()
	pod := n.run(n.podOfASet("web"))
	began := time.Now()
	n.start()
	n.eventuallyReported(pod)
	assert.GreaterOrEqual(t, time.Since(began), 2*time.Second, "a second, and a hundredth of two minutes")
}
