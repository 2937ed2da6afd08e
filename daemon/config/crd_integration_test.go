package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

func newRequest(t *testing.T) *v1beta1.ContainerRecreateRequest {
	t.Helper()
	return &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "restart"},
		Spec:       v1beta1.ContainerRecreateRequestSpec{PodName: "web", Containers: []v1beta1.ContainerToRecreate{{Name: "main"}}},
	}
}

// A new request has no phase, and clients that write whole objects send the empty one.
func TestARequestNeedsNoPhase(t *testing.T) {
	c := env.Client(t)
	request := newRequest(t)
	require.NoError(t, c.Create(t.Context(), request))
	request.Labels = map[string]string{"seen": "true"}
	require.NoError(t, c.Update(t.Context(), request))
	for name, status := range map[string]string{
		"without a phase":     `{"status":{"containerStatusSnapshot":[{"name":"main","ready":true,"restartCount":0}]}}`,
		"with the empty one":  `{"status":{"phase":""}}`,
		"with the first one":  `{"status":{"phase":"Pending"}}`,
		"with that of an end": `{"status":{"phase":"Completed","completionTime":"2026-03-04T05:06:07Z"}}`,
	} {
		target := request.DeepCopy()
		require.NoError(t, c.Status().Patch(t.Context(), target, client.RawPatch(types.MergePatchType, []byte(status))), name)
	}
	err := c.Status().Patch(t.Context(), request, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`)))
	assert.ErrorContains(t, err, `status.phase: Unsupported value: "Running"`)
}

func TestTheSchemaRefusesWithTheWordsOfTheWebhook(t *testing.T) {
	cases := []struct {
		name   string
		change func(*v1beta1.ContainerRecreateRequestSpec)
		want   string
	}{
		{"no container", func(s *v1beta1.ContainerRecreateRequestSpec) { s.Containers = nil }, "spec.containers"},
		{"negative deadline", func(s *v1beta1.ContainerRecreateRequestSpec) { s.ActiveDeadlineSeconds = new(int64(-1)) }, "spec.activeDeadlineSeconds: Invalid value: -1: must be 0 or more"},
		{"negative ttl", func(s *v1beta1.ContainerRecreateRequestSpec) { s.TTLSecondsAfterFinished = new(int32(-1)) }, "spec.ttlSecondsAfterFinished: Invalid value: -1: must be 0 or more"},
		{"negative grace", func(s *v1beta1.ContainerRecreateRequestSpec) {
			s.Strategy = &v1beta1.RecreateStrategy{TerminationGracePeriodSeconds: new(int64(-1))}
		}, "spec.strategy.terminationGracePeriodSeconds: Invalid value: -1: must be 0 or more"},
		{"negative grace before", func(s *v1beta1.ContainerRecreateRequestSpec) {
			s.Strategy = &v1beta1.RecreateStrategy{UnreadyGracePeriodSeconds: new(int64(-1))}
		}, "spec.strategy.unreadyGracePeriodSeconds: Invalid value: -1: must be 0 or more"},
		{"negative start", func(s *v1beta1.ContainerRecreateRequestSpec) {
			s.Strategy = &v1beta1.RecreateStrategy{MinStartedSeconds: -1}
		}, "spec.strategy.minStartedSeconds: Invalid value: -1: must be 0 or more"},
		{"unknown policy", func(s *v1beta1.ContainerRecreateRequestSpec) {
			s.Strategy = &v1beta1.RecreateStrategy{FailurePolicy: "Retry"}
		}, `spec.strategy.failurePolicy: Unsupported value: "Retry": supported values: "Fail", "Ignore"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			request := newRequest(t)
			c.change(&request.Spec)
			assert.ErrorContains(t, env.Client(t).Create(t.Context(), request), c.want)
		})
	}
}

// What OpenKruise stored comes back as it was.
func TestStoredObjectsAreAccepted(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	namespace := env.Namespace(t)
	for _, text := range []string{storedNodeImage, storedRequest} {
		object := &unstructured.Unstructured{Object: testenv.Fields(t, text)}
		if object.GetKind() == v1beta1.ContainerRecreateRequestKind {
			object.SetNamespace(namespace)
		}
		want := object.DeepCopy()
		strict := client.FieldValidation(metav1.FieldValidationStrict)
		require.NoError(t, c.Create(t.Context(), object, strict))
		object.Object["status"] = want.Object["status"]
		require.NoError(t, c.Status().Update(t.Context(), object, strict))
		assert.Equal(t, want.Object["spec"], object.Object["spec"])
		assert.Subset(t, object.Object["status"], want.Object["status"])
	}
}

func TestCountersAreShownAtZero(t *testing.T) {
	env.Need(t)
	image := &unstructured.Unstructured{Object: testenv.Fields(t, "{apiVersion: apps.kruise.io/v1beta1, kind: NodeImage, metadata: {name: zero}}")}
	testenv.CountAtZero(t, env.Client(t), image, "desired", "succeeded", "failed", "pulling", "waiting")
}

const storedNodeImage = `
apiVersion: apps.kruise.io/v1beta1
kind: NodeImage
metadata: {name: stored}
spec:
  images:
    nginx:
      pullSecrets: [{namespace: kruise-daemon-config, name: registry, mode: batch}]
      sandboxConfig: {annotations: {io.kubernetes.image.metrics.tags: "cluster=cn-shanghai"}, labels: {io.kubernetes.image.app: foo}}
      tags:
      - tag: "1.25"
        createdAt: "2026-03-04T05:06:07Z"
        imagePullPolicy: IfNotPresent
        version: 2
        pullPolicy: {timeoutSeconds: 300, backoffLimit: 2, ttlSecondsAfterFinished: 600, activeDeadlineSeconds: 1200}
        ownerReferences: [{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, namespace: default, name: warm, uid: 8c9e}]
status:
  desired: 1
  succeeded: 1
  failed: 0
  pulling: 0
  firstSyncStatus: {syncAt: "2026-03-04T05:06:08Z", status: Succeeded}
  imageStatuses:
    nginx:
      tags:
      - {tag: "1.25", phase: Succeeded, progress: 100, version: 2, startTime: "2026-03-04T05:06:08Z", completionTime: "2026-03-04T05:06:18Z", imageID: "nginx@sha256:1"}
`

const storedRequest = `
apiVersion: apps.kruise.io/v1beta1
kind: ContainerRecreateRequest
metadata: {name: stored}
spec:
  podName: web
  containers:
  - name: main
    preStop: {httpGet: {path: /stop, port: http, scheme: HTTP, httpHeaders: [{name: X, value: "1"}]}}
    ports: [{name: http, containerPort: 80, protocol: TCP}]
    statusContext: {containerID: "containerd://1", restartCount: 0}
  - name: proxy
    preStop: {exec: {command: [sh, -c, sleep 1]}}
    statusContext: {containerID: "containerd://2", restartCount: 3}
  strategy: {failurePolicy: Ignore, orderedRecreate: false, forceRecreate: true, terminationGracePeriodSeconds: 30, unreadyGracePeriodSeconds: 0, minStartedSeconds: 0}
  activeDeadlineSeconds: 300
  ttlSecondsAfterFinished: 0
status:
  phase: Completed
  completionTime: "2026-03-04T05:06:07Z"
  containerRecreateStates: [{name: main, phase: Succeeded, isKilled: true}, {name: proxy, phase: Failed, message: "kill container error: gone"}]
  containerStatusSnapshot: [{name: main, ready: true, restartCount: 1, containerID: "containerd://3"}]
  conditions:
  - {type: PreRecreateGrace, status: "True", reason: PreRecreateGrace, message: "", lastTransitionTime: "2026-03-04T05:06:00Z"}
`
