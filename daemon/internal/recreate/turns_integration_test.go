package recreate_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

// givenQueue makes requests for a pod, the first of which is under way.
func givenQueue(t *testing.T, c client.Client, pod *corev1.Pod, size int) []*v1beta1.ContainerRecreateRequest {
	t.Helper()
	var queue []*v1beta1.ContainerRecreateRequest
	for i := range size {
		r := newRequest(fmt.Sprintf("r-%02d", i), pod, "a")
		require.NoError(t, c.Create(t.Context(), r))
		phase := v1beta1.RecreatePending
		if i == 0 {
			phase = v1beta1.RecreateRecreating
		}
		setPhase(t, c, r, phase)
		queue = append(queue, r)
	}
	return queue
}

func setPhase(t *testing.T, c client.Client, r *v1beta1.ContainerRecreateRequest, phase v1beta1.RecreatePhase) {
	t.Helper()
	before := client.MergeFrom(r.DeepCopy())
	r.Status.Phase = phase
	require.NoError(t, c.Status().Patch(t.Context(), r, before))
}

// restarted has container a of the pod run anew, and waits until the first request knows it.
func restarted(t *testing.T, c client.Client, pod *corev1.Pod, r *v1beta1.ContainerRecreateRequest, count int32) {
	t.Helper()
	before := client.MergeFrom(pod.DeepCopy())
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "a", Image: "app:1", ContainerID: fmt.Sprintf("containerd://a-%d", count), RestartCount: count, Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	require.NoError(t, c.Status().Patch(t.Context(), pod, before))
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(r), r))
		if assert.Len(collect, r.Status.ContainerStatusSnapshot, 1) {
			assert.Equal(collect, count, r.Status.ContainerStatusSnapshot[0].RestartCount)
		}
	})
}

// readsOf counts the reads of pods. The test makes none itself.
func readsOf(t *testing.T, audit *testenv.Audit) int {
	t.Helper()
	reads := 0
	for _, r := range audit.Requests(t, "") {
		if r.String() == "get pods" {
			reads++
		}
	}
	return reads
}

// Each read is one of the API server: fifteen requests that wait make none, whatever happens to the pod and the first one.
func TestRequestsThatWaitReadNoPods(t *testing.T) {
	c := givenController(t)
	pod := givenPod(t, c)
	audit := env.AuditOf(t, pod.Namespace)
	queue := givenQueue(t, c, pod, 16)
	for count := range int32(3) {
		restarted(t, c, pod, queue[0], count+1)
	}
	assert.LessOrEqual(t, readsOf(t, audit), 12, "the pass of the first request reads the pod, after its writes and those of the pod")

	setPhase(t, c, queue[0], v1beta1.RecreateCompleted)
	completes(t, c, queue[0])
	require.NoError(t, c.Delete(t.Context(), queue[2]))
	require.NoError(t, c.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	for i, r := range queue {
		if i == 0 || i == 2 {
			continue
		}
		completes(t, c, r)
		assert.Equal(t, plan.MessagePodGone, r.Status.Message, "its turn comes when the one before has ended")
	}
}

// Admission counts by the cache of the controller, which it never waits for.
func TestTheBacklogOfAPod(t *testing.T) {
	backlog := &recreate.Backlog{}
	assert.Zero(t, backlog.Open(t.Context(), &corev1.Pod{}), "before the controller is set up")
	c := givenControllerWith(t, backlog)
	pod := givenPod(t, c)
	queue := givenQueue(t, c, pod, 3)
	counts := func(want int) {
		t.Helper()
		await.Until(t, func(collect *assert.CollectT) { assert.Equal(collect, want, backlog.Open(t.Context(), pod)) })
	}
	counts(3)
	other := pod.DeepCopy()
	other.UID = "former"
	assert.Zero(t, backlog.Open(t.Context(), other))
	setPhase(t, c, queue[0], v1beta1.RecreateCompleted)
	counts(2)
	require.NoError(t, c.Delete(t.Context(), queue[1]))
	counts(1)
}
