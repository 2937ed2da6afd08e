package admission_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	coreadmission "github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/manager"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/conversion"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/admission"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{
		CRDs:     []string{"../../../config/crd/containerrecreaterequests.yaml"},
		Webhooks: envtest.WebhookInstallOptions{Paths: []string{"../../../config/webhook"}},
		Scheme:   testenv.Scheme(v1alpha1.AddToScheme, v1beta1.AddToScheme),
	})
}

// user is a client that hears warnings.
type user struct {
	client.Client
	*testenv.Warnings
}

// serve answers the webhooks of the shipped configurations until the test ends.
func serve(t *testing.T) *user {
	t.Helper()
	mgr := env.Manager(t)
	w := admission.Webhook{Reader: mgr.GetAPIReader(), Open: func(_ context.Context, pod *corev1.Pod) int {
		if pod.Labels["queue"] == "" {
			return 0
		}
		return v1beta1.MaxRequestsPerPod
	}}
	manager.Webhooks{
		Mutating:   []coreadmission.Endpoint{w.Mutating()},
		Validating: []coreadmission.Endpoint{w.Validating()},
		Converting: coreadmission.Converting(conversion.Convert),
	}.Register(mgr.GetWebhookServer())
	env.Start(t, mgr)
	c, warnings := env.Warned(t)
	env.ConvertHere(t, "containerrecreaterequests.apps.kruise.io", alpha(givenPod(t, c, nil), "probe", "main"))
	warnings.Heard()
	return &user{c, warnings}
}

// givenPod makes the pod of the unit tests in a namespace of its own.
func givenPod(t *testing.T, c client.Client, change func(*corev1.Pod)) string {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	env.Share(t, node)
	namespace := env.Namespace(t)
	o := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: corev1.PodSpec{
			NodeName:       "node-1",
			InitContainers: []corev1.Container{{Name: "proxy", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
			Containers: []corev1.Container{{Name: "main", Image: "app:1", Lifecycle: &corev1.Lifecycle{
				PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 3}},
			}}},
		},
	}
	if change != nil {
		change(o)
	}
	require.NoError(t, c.Create(t.Context(), o))
	o.Status.Phase = corev1.PodRunning
	o.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ContainerID: "containerd://m"}}
	o.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", ContainerID: "containerd://p"}}
	require.NoError(t, c.Status().Update(t.Context(), o))
	return namespace
}

func alpha(namespace, name string, containers ...string) *v1alpha1.ContainerRecreateRequest {
	r := &v1alpha1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	r.Spec.PodName = "web"
	for _, c := range containers {
		r.Spec.Containers = append(r.Spec.Containers, v1alpha1.ContainerToRecreate{Name: c})
	}
	return r
}

func beta(namespace, name string, names ...string) *v1beta1.ContainerRecreateRequest {
	r := request(containers(names...))
	r.Namespace, r.Name = namespace, name
	return r
}

func TestWebhooks(t *testing.T) {
	u := serve(t)
	t.Run("both versions are filled", func(t *testing.T) { testFilled(t, u) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, u) })
	t.Run("warnings", func(t *testing.T) { testWarnings(t, u) })
	t.Run("changes", func(t *testing.T) { testChanges(t, u) })
	t.Run("v1alpha1 annotations", func(t *testing.T) { testAnnotations(t, u) })
}

func testFilled(t *testing.T, u *user) {
	t.Helper()
	namespace := givenPod(t, u, nil)
	require.NoError(t, u.Create(t.Context(), alpha(namespace, "old", "main", "proxy")))
	require.NoError(t, u.Create(t.Context(), beta(namespace, "new", "main", "proxy")))
	for _, name := range []string{"old", "new"} {
		r := &v1beta1.ContainerRecreateRequest{}
		require.NoError(t, u.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, r))
		assert.NotEmpty(t, r.Labels[v1beta1.PodUIDLabel])
		assert.Equal(t, "node-1", r.Labels[v1beta1.NodeNameLabel])
		assert.Equal(t, "true", r.Labels[v1beta1.ActiveLabel])
		assert.Equal(t, new(int64(30)), r.Spec.Strategy.TerminationGracePeriodSeconds)
		assert.Equal(t, []v1beta1.ContainerToRecreate{
			{Name: "main", PreStop: &v1beta1.PreStopHandler{Sleep: &corev1.SleepAction{Seconds: 3}}, StatusContext: &v1beta1.ContainerStatusContext{ContainerID: "containerd://m"}},
			{Name: "proxy", StatusContext: &v1beta1.ContainerStatusContext{ContainerID: "containerd://p"}},
		}, r.Spec.Containers, name)
		assert.Empty(t, r.Status.Phase)
	}
	assert.Empty(t, u.Heard())
}

func testRefusals(t *testing.T, u *user) {
	t.Helper()
	namespace := givenPod(t, u, nil)
	for want, r := range map[string]client.Object{
		`spec.containers[1].name: Invalid value: "db": pod has no container "db"`: alpha(namespace, "a", "main", "db"),
		`spec.containers[1].name: Duplicate value: "main"`:                        beta(namespace, "b", "main", "main"),
		`spec.podName: Invalid value: "web": pod "web" not found in namespace`:    beta(env.Namespace(t), "c", "main"),
		`spec.containers: Required value: name at least one container`:            alpha(namespace, "d"),
	} {
		err := u.Create(t.Context(), r)
		require.ErrorContains(t, err, want)
		assert.True(t, apierrors.IsInvalid(err), want)
	}
	negative := alpha(namespace, "e", "main")
	negative.Spec.Strategy = &v1alpha1.RecreateStrategy{MinStartedSeconds: -1}
	require.ErrorContains(t, u.Create(t.Context(), negative), "spec.strategy.minStartedSeconds: Invalid value: -1: must be 0 or more")
	full := beta(givenPod(t, u, func(pod *corev1.Pod) { pod.Labels = map[string]string{"queue": "full"} }), "g", "main")
	err := u.Create(t.Context(), full)
	require.ErrorContains(t, err, `spec.podName: Forbidden: pod "web" has 16 ContainerRecreateRequests that are not completed, of at most 16`)
	assert.True(t, apierrors.IsInvalid(err))
	given := beta(namespace, "f", "main")
	given.Spec.Containers[0].StatusContext = &v1beta1.ContainerStatusContext{ContainerID: "containerd://other"}
	require.ErrorContains(t, u.Create(t.Context(), given), "spec.containers[0].statusContext: Forbidden: filled by the system")
}

func testWarnings(t *testing.T, u *user) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cloud", Labels: map[string]string{v1beta1.NodeTypeLabel: v1beta1.VirtualKubelet}}}
	require.NoError(t, u.Create(t.Context(), node))
	namespace := givenPod(t, u, func(pod *corev1.Pod) {
		pod.Spec.NodeName, pod.Spec.RestartPolicy = "cloud", corev1.RestartPolicyNever
	})
	require.NoError(t, u.Create(t.Context(), beta(namespace, "a", "main")))
	assert.ElementsMatch(t, []string{
		`node "cloud" is virtual and has no node agent to recreate containers`,
		`container "main" will be stopped and not started again: its restart policy is Never`,
	}, u.Heard())
}

func testChanges(t *testing.T, u *user) {
	t.Helper()
	r := beta(givenPod(t, u, nil), "again", "main")
	require.NoError(t, u.Create(t.Context(), r))
	patch := func(body string) error {
		return u.Patch(t.Context(), r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body)))
	}
	for body, want := range map[string]string{
		`{"spec":{"podName":"other"}}`:                                     "spec: is immutable: create another request",
		`{"metadata":{"labels":{"crr.apps.kruise.io/pod-uid":"other"}}}`:   "metadata.labels[crr.apps.kruise.io/pod-uid]: is immutable",
		`{"metadata":{"labels":{"crr.apps.kruise.io/node-name":"other"}}}`: "metadata.labels[crr.apps.kruise.io/node-name]: is immutable",
	} {
		err := patch(body)
		require.ErrorContains(t, err, want)
		assert.True(t, apierrors.IsForbidden(err), want)
	}
	require.NoError(t, patch(`{"metadata":{"labels":{"crr.apps.kruise.io/active":null},"finalizers":["crr.apps.kruise.io/unready-acquired"]}}`))
	require.NoError(t, patch(`{"metadata":{"finalizers":null}}`))
	require.NoError(t, u.Delete(t.Context(), r))
}

func testAnnotations(t *testing.T, u *user) {
	t.Helper()
	r := beta(givenPod(t, u, nil), "again", "main")
	require.NoError(t, u.Create(t.Context(), r))
	body := `{"status":{"phase":"Recreating","conditions":[{"type":"PreRecreateGrace","status":"True","reason":"PreRecreateGrace","message":"","lastTransitionTime":"2030-01-01T00:00:00Z"}]}}`
	require.NoError(t, u.Status().Patch(t.Context(), r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(body))))
	old := &v1alpha1.ContainerRecreateRequest{}
	require.NoError(t, u.Get(t.Context(), client.ObjectKeyFromObject(r), old))
	require.Equal(t, "2030-01-01T00:00:00Z", old.Annotations[v1beta1.UnreadyAcquiredAnnotation])

	labelled := old.DeepCopy()
	labelled.Labels["mine"] = "x"
	require.NoError(t, u.Update(t.Context(), labelled))
	labelled.Annotations[v1beta1.UnreadyAcquiredAnnotation] = "2031-01-01T00:00:00Z"
	err := u.Update(t.Context(), labelled)
	assert.True(t, apierrors.IsForbidden(err))
	require.ErrorContains(t, err, "metadata.annotations[crr.apps.kruise.io/unready-acquired]: is immutable")
}
