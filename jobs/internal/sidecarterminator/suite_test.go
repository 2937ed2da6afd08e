package sidecarterminator_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/nodes"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/sidecarterminator"
)

const (
	userAgent         = "jobs-manager/sidecarterminator"
	realNode, virtual = "real", "virtual"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{Scheme: testenv.Scheme(daemon.AddToScheme)})
}

// definition returns the CRD of ContainerRecreateRequest.
func definition(t *testing.T) envtest.CRDInstallOptions {
	t.Helper()
	env.Need(t)
	raw, err := os.ReadFile("testdata/containerrecreaterequests.yaml")
	require.NoError(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.Unmarshal(raw, crd))
	return envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}}
}

// givenRequests has the cluster serve ContainerRecreateRequest.
func givenRequests(t *testing.T) {
	t.Helper()
	env.InstallCRDs(t, definition(t))
}

// givenController runs the controller for one namespace until the end of the test.
func givenController(t *testing.T, namespace string) client.Client {
	t.Helper()
	givenRequests(t)
	return givenControllerOf(t, env, namespace)
}

// givenControllerOf is givenController for one that reaches the server by another environment.
func givenControllerOf(t *testing.T, through testenv.Environment, namespace string) client.Client {
	t.Helper()
	c := env.Client(t)
	givenNode(t, realNode, nil)
	givenNode(t, virtual, map[string]string{daemon.NodeTypeLabel: daemon.VirtualKubelet})
	cached := fastclient.CacheOptions(namespace, map[client.Object]cache.ByObject{&corev1.Node{}: nodes.Cached()})
	through.Control(t, cached, func(mgr manager.Manager, reader fastclient.Options) error {
		return sidecarterminator.SetUp(t.Context(), mgr, pass.Settings{Reader: reader, Namespace: namespace, UserAgent: userAgent})
	})
	return c
}

func givenNode(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	env.Share(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
}

// variable returns an environment variable with the value.
func variable(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }

func stopped() corev1.EnvVar { return variable(v1beta1.TerminateSidecarEnv, "true") }

// givenPod makes a pod with container main and sidecars log and mesh, all of them running.
func givenPod(t *testing.T, c client.Client, namespace, node string, log, mesh []corev1.EnvVar, changes ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "job"}}
	pod.Spec.NodeName, pod.Spec.RestartPolicy = node, corev1.RestartPolicyNever
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}, {Name: "log", Image: "log:1", Env: log}, {Name: "mesh", Image: "mesh:1", Env: mesh}}
	for _, change := range changes {
		change(pod)
	}
	require.NoError(t, c.Create(t.Context(), pod))
	report(t, c, pod, func(s *corev1.PodStatus) {
		s.Phase = corev1.PodRunning
		for _, container := range pod.Spec.Containers {
			s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
				Name: container.Name, ContainerID: "containerd://" + container.Name,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
			})
		}
	})
	return pod
}

// report is what the kubelet writes.
func report(t *testing.T, c client.Client, pod *corev1.Pod, change func(*corev1.PodStatus)) {
	t.Helper()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
	before := pod.DeepCopy()
	change(&pod.Status)
	require.NoError(t, c.Status().Patch(t.Context(), pod, client.MergeFrom(before)))
}

// exit ends a container.
func exit(t *testing.T, c client.Client, pod *corev1.Pod, container string, code int32) {
	t.Helper()
	report(t, c, pod, func(s *corev1.PodStatus) {
		for i := range s.ContainerStatuses {
			if s.ContainerStatuses[i].Name == container {
				s.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					ExitCode: code, ContainerID: s.ContainerStatuses[i].ContainerID,
				}}
			}
		}
	})
}

// requested waits for the request for the pod with the suffix, and returns it.
func requested(t *testing.T, c client.Client, pod *corev1.Pod, suffix string, containers ...string) *daemon.ContainerRecreateRequest {
	t.Helper()
	r := &daemon.ContainerRecreateRequest{}
	await.Until(t, func(collect *assert.CollectT) {
		key := client.ObjectKey{Namespace: pod.Namespace, Name: "sidecar-termination-" + string(pod.UID) + suffix}
		require.NoError(collect, c.Get(t.Context(), key, r))
	})
	var names []string
	for _, container := range r.Spec.Containers {
		names = append(names, container.Name)
	}
	assert.Equal(t, containers, names)
	assert.True(t, metav1.IsControlledBy(r, pod))
	return r
}
