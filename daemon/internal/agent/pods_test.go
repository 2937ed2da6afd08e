package agent_test

import (
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/podcache"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/simulate"
)

// givenManager runs the manager's part in the requests of a node's namespace until the end of the test.
func (n *node) givenManager() {
	n.t.Helper()
	pods := podcache.Filter()
	mgr := env.Manager(n.t, func(o *manager.Options) {
		o.Cache = fastclient.CacheOptions(n.name, map[client.Object]cache.ByObject{&corev1.Pod{}: podcache.ByObject(n.name)})
		o.Cache.NewInformer = pods.Limit(o.Cache.NewInformer)
	})
	require.NoError(n.t, recreate.SetUp(n.t.Context(), mgr, pass.Settings{Namespace: n.name, UserAgent: "daemon-manager/containerrecreaterequest"}, &recreate.Backlog{}, pods))
	env.Start(n.t, mgr)
}

// podNamed returns a pod of the node with containers of the given names.
func (n *node) podNamed(name string, containers ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: n.name, TerminationGracePeriodSeconds: new(int64(9))},
	}
	for _, container := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: container, Image: container + ":1"})
	}
	return pod
}

// run makes a pod whose containers a kubelet keeps running.
func (n *node) run(pod *corev1.Pod) *corev1.Pod {
	n.t.Helper()
	require.NoError(n.t, n.client.Create(n.t.Context(), pod))
	parts := pod.DeepCopy()
	pod.Status.PodIP = "127.0.0.1"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	require.NoError(n.t, n.client.Status().Patch(n.t.Context(), pod, client.MergeFrom(parts)))
	(&simulate.Kubelet{Client: n.client, Runtime: n.runtime}).RunPod(n.t, pod)
	return n.fresh(pod)
}

func (n *node) fresh(pod *corev1.Pod) *corev1.Pod {
	n.t.Helper()
	out := &corev1.Pod{}
	require.NoError(n.t, n.client.Get(n.t.Context(), client.ObjectKeyFromObject(pod), out))
	return out
}

func containerID(pod *corev1.Pod, name string) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.Name == name {
			return status.ContainerID
		}
	}
	return ""
}

// requestFor returns what the webhook makes of a request for containers of a pod.
func (n *node) requestFor(pod *corev1.Pod, containers ...string) *v1beta1.ContainerRecreateRequest {
	request := &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.name, GenerateName: "r-", Labels: map[string]string{
			v1beta1.PodUIDLabel: string(pod.UID), v1beta1.NodeNameLabel: n.name, v1beta1.ActiveLabel: "true",
		}},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName:  pod.Name,
			Strategy: &v1beta1.RecreateStrategy{FailurePolicy: v1beta1.FailurePolicyFail, TerminationGracePeriodSeconds: new(int64(9))},
		},
	}
	for _, name := range containers {
		request.Spec.Containers = append(request.Spec.Containers, v1beta1.ContainerToRecreate{
			Name: name, StatusContext: &v1beta1.ContainerStatusContext{ContainerID: containerID(pod, name)},
		})
	}
	return request
}

func (n *node) ask(request *v1beta1.ContainerRecreateRequest) *v1beta1.ContainerRecreateRequest {
	n.t.Helper()
	require.NoError(n.t, n.client.Create(n.t.Context(), request))
	return request
}

// eventuallyCompleted waits for the end of a request and returns the phases of its containers.
func (n *node) eventuallyCompleted(request *v1beta1.ContainerRecreateRequest) ([]v1beta1.RecreatePhase, v1beta1.ContainerRecreateRequestStatus) {
	n.t.Helper()
	now := &v1beta1.ContainerRecreateRequest{}
	await.Until(n.t, func(c *assert.CollectT) {
		require.NoError(c, n.client.Get(n.t.Context(), client.ObjectKeyFromObject(request), now))
		assert.Equal(c, v1beta1.RecreateCompleted, now.Status.Phase, "%+v", now.Status)
	})
	var phases []v1beta1.RecreatePhase
	for _, state := range now.Status.ContainerRecreateStates {
		phases = append(phases, state.Phase)
	}
	return phases, now.Status
}

// stopped returns the runtime's IDs of the containers that were told to stop, in their order.
func (n *node) stopped() []string {
	var ids []string
	for _, call := range n.runtime.Calls("StopContainer") {
		ids = append(ids, n.runtime.Name+"://"+call.Request.(*runtimev1.StopContainerRequest).ContainerId)
	}
	return ids
}
