package fastclient_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
)

// whole returns a pod as servers send it; no string of it is shared with another one.
func whole(name string) *corev1.Pod {
	own := func(s string) string { return string([]byte(s)) }
	p := pod(own("default"), own(name))
	p.Labels = map[string]string{own("app"): own("web"), contract.InstanceIDLabel: name}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: own("apps.kruise.io/v1beta1"), Kind: own("CloneSet"), Name: own("web"), UID: "web-uid", Controller: new(true)}}
	p.Spec.RestartPolicy = corev1.RestartPolicyAlways
	p.Spec.NodeName = own("node-1")
	since := metav1.NewTime(time.Unix(1_700_000_000, 0))
	for _, kind := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodScheduled, corev1.ContainersReady, corev1.PodReady,
		contract.InPlaceUpdateReady, contract.KruisePodReady,
	} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(own(string(kind))), Status: "True", Reason: own("Good"), Message: name, LastTransitionTime: since})
	}
	p.Status.Phase, p.Status.PodIP, p.Status.StartTime = corev1.PodRunning, "10.0.0.1", &since
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: own("main"), Image: own("image:1"), ImageID: own("image@sha256:1"), ContainerID: name, Ready: true, RestartCount: 2,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}, Resources: &corev1.ResourceRequirements{},
		VolumeMounts: []corev1.VolumeMountStatus{{Name: "data"}},
	}}
	return p
}

func trimmed(t *testing.T, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	got, err := fastclient.TrimPod(p)
	require.NoError(t, err)
	return got.(*corev1.Pod)
}

func TestTrimmedPodsKeepWhatPlansRead(t *testing.T) {
	p := trimmed(t, whole("web-1"))
	w := whole("web-1")
	assert.Equal(t, w.Labels, p.Labels)
	assert.Equal(t, w.OwnerReferences, p.OwnerReferences)
	assert.Equal(t, w.Spec.ReadinessGates, p.Spec.ReadinessGates)
	assert.Equal(t, w.Status.Conditions[2:], p.Status.Conditions)
	assert.Equal(t, corev1.PodRunning, p.Status.Phase)
	assert.Empty(t, p.Status.PodIP)
	w.Status.ContainerStatuses[0].VolumeMounts = nil
	assert.Equal(t, w.Status.ContainerStatuses, p.Status.ContainerStatuses)
}

// The node agent has as long to restart a container as the container may take to stop.
func TestTrimmedPodsKeepHowLongTheyMayTakeToStop(t *testing.T) {
	for name, c := range map[string]struct{ given, want *int64 }{
		"long":    {new(int64(600)), new(int64(600))},
		"none":    {new(int64(0)), new(int64(0))},
		"default": {new(int64(corev1.DefaultTerminationGracePeriodSeconds)), nil},
		"absent":  {nil, nil},
	} {
		p := whole("web-1")
		p.Spec.TerminationGracePeriodSeconds = c.given
		assert.Equal(t, c.want, trimmed(t, p).Spec.TerminationGracePeriodSeconds, name)
	}
}

// A pod of a DaemonSet belongs to its node before the scheduler has put it there.
func TestTrimmedPodsKeepTheNodeThatTheyWaitFor(t *testing.T) {
	named := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}}}}
	labelled := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}}
	affinity := func(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	for name, c := range map[string]struct {
		node        string
		given, want *corev1.Affinity
	}{
		"pinned":                {"", affinity(labelled, named), affinity(named)},
		"scheduled":             {"node-1", affinity(named), nil},
		"not pinned":            {"", affinity(labelled), nil},
		"no required affinity":  {"", &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}, nil},
		"no affinity for nodes": {"", &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}, nil},
		"no affinity":           {"", nil, nil},
	} {
		p := whole("web-1")
		p.Spec.NodeName, p.Spec.Affinity = c.node, c.given
		assert.Equal(t, c.want, trimmed(t, p).Spec.Affinity, name)
	}
}

// Why a pod has failed is told to users, and nobody reads why another one has not.
func TestTrimmedPodsSayWhyTheyHaveFailed(t *testing.T) {
	evicted := whole("web-1")
	evicted.Status.Phase, evicted.Status.Reason = corev1.PodFailed, "Evicted"
	evicted.Status.Message = "The node was low on resource: memory. " + strings.Repeat("é", 500)
	evicted.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}
	p := trimmed(t, evicted)
	assert.Equal(t, "Evicted", p.Status.Reason)
	assert.True(t, strings.HasPrefix(p.Status.Message, "The node was low on resource: memory. é"))
	assert.LessOrEqual(t, len(p.Status.Message), 256)
	assert.True(t, utf8.ValidString(p.Status.Message))
	assert.Equal(t, int32(137), p.Status.ContainerStatuses[0].State.Terminated.ExitCode)
	running := whole("web-1")
	running.Status.Reason, running.Status.Message = "NodeLost", "the node does not answer"
	assert.Empty(t, trimmed(t, running).Status.Reason+trimmed(t, running).Status.Message)
}

// Users are told of containers that crash, which their former run shows. Of one that is ready, only an end for its memory
// is read. The kubelet's words are dropped.
func TestTrimmedPodsSayWhatRanBefore(t *testing.T) {
	crashed := whole("web-1")
	began, ended := metav1.NewTime(time.Unix(1_700_000_000, 0)), metav1.NewTime(time.Unix(1_700_000_009, 0))
	former := &corev1.ContainerStateTerminated{
		ExitCode: 1, Reason: "Error", Message: "panic", StartedAt: began, FinishedAt: ended, ContainerID: "containerd://1",
	}
	status := &crashed.Status.ContainerStatuses[0]
	status.Ready, status.Started, status.LastTerminationState.Terminated = false, new(true), former
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s"}}
	p := trimmed(t, crashed.DeepCopy())
	assert.Equal(t, &corev1.ContainerStateTerminated{Reason: "Error", StartedAt: began, FinishedAt: ended}, p.Status.ContainerStatuses[0].LastTerminationState.Terminated)
	assert.Equal(t, new(true), p.Status.ContainerStatuses[0].Started)
	assert.Equal(t, &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}, p.Status.ContainerStatuses[0].State.Waiting)
	status.State = corev1.ContainerState{Terminated: former}
	p = trimmed(t, crashed.DeepCopy())
	assert.Equal(t, &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", StartedAt: began, FinishedAt: ended}, p.Status.ContainerStatuses[0].State.Terminated)
	assert.Equal(t, p, trimmed(t, p.DeepCopy()))
	status.Ready = true
	assert.Empty(t, trimmed(t, crashed.DeepCopy()).Status.ContainerStatuses[0].LastTerminationState)
	former.Reason = "OOMKilled" // limits that were raised may not have reached it
	p = trimmed(t, crashed)
	assert.Equal(t, "OOMKilled", p.Status.ContainerStatuses[0].LastTerminationState.Terminated.Reason)
	assert.Nil(t, p.Status.ContainerStatuses[0].Started)
}

// Of all managers, plans ask for those of resizes that are not recorded.
func TestTrimmedPodsKeepUnrecordedResizes(t *testing.T) {
	entry := func(manager, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource}
	}
	pod := whole("web-1")
	pod.Labels = map[string]string{contract.RevisionLabel: "web-1"}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		entry("kubelet", "status"), entry("vpa", "resize"), entry("flotilla-resize-1", "resize"), entry("flotilla-resize-2", "resize"), entry("flotilla-resize-2", ""),
	}
	trimmed, err := fastclient.TrimPod(pod)
	require.NoError(t, err)
	assert.Equal(t, []metav1.ManagedFieldsEntry{entry("flotilla-resize-2", "resize")}, trimmed.(*corev1.Pod).ManagedFields)
}

func TestTrimmingTwiceChangesNothing(t *testing.T) {
	once := trimmed(t, whole("web-1"))
	before := once.DeepCopy()
	assert.Equal(t, before, trimmed(t, once))
}

func TestPodsShareWhatTheyHaveInCommon(t *testing.T) {
	a, b := trimmed(t, whole("web-1")), trimmed(t, whole("web-2"))
	same := func(a, b string) bool { return unsafe.StringData(a) == unsafe.StringData(b) }
	assert.True(t, same(a.Namespace, b.Namespace))
	assert.True(t, same(a.Labels["app"], b.Labels["app"]))
	assert.True(t, same(a.OwnerReferences[0].Name, b.OwnerReferences[0].Name))
	assert.True(t, same(a.Spec.NodeName, b.Spec.NodeName))
	assert.True(t, same(a.Status.Conditions[0].Reason, b.Status.Conditions[0].Reason))
	assert.True(t, same(a.Status.ContainerStatuses[0].ImageID, b.Status.ContainerStatuses[0].ImageID))
}

func TestTrimmedPullJobsKeepTheirNumbers(t *testing.T) {
	job := &unstructured.Unstructured{Object: map[string]any{
		"kind":     contract.ImagePullJobKind,
		"metadata": map[string]any{"name": "pull", "managedFields": []any{map[string]any{"manager": "x"}}},
		"spec":     map[string]any{"image": "app:2", "pullSecrets": []any{"secret"}},
		"status":   map[string]any{"desired": int64(2), "completionTime": "2026-01-02T12:00:00Z", "failedNodes": []any{"n1"}, "failures": []any{map[string]any{"node": "n1"}}},
	}}
	_, err := fastclient.Trim(job)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"kind": contract.ImagePullJobKind, "metadata": map[string]any{"name": "pull"}, "spec": map[string]any{"image": "app:2"},
		"status": map[string]any{"desired": int64(2), "completionTime": "2026-01-02T12:00:00Z"},
	}, job.Object)
	other := &unstructured.Unstructured{Object: map[string]any{"kind": "Other", "spec": map[string]any{"a": "b"}}}
	_, err = fastclient.Trim(other)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"a": "b"}, other.Object["spec"])
}
