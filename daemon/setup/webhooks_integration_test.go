package setup

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/conversion"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/featuregates"
)

func newImage(name string, secrets ...v1beta1.SecretReference) *v1beta1.NodeImage {
	policy := &v1beta1.ImageTagPullPolicy{TTLSecondsAfterFinished: new(int32(60))}
	return &v1beta1.NodeImage{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.NodeImageSpec{Images: map[string]v1beta1.ImageSpec{
			"nginx": {PullSecrets: secrets, Tags: []v1beta1.ImageTagSpec{{Tag: "2", PullPolicy: policy}, {Tag: "1", PullPolicy: policy}}},
		}},
	}
}

// converted waits until the API server has objects of both kinds converted here.
func converted(t *testing.T) {
	t.Helper()
	givenCRDs(t)
	env.ConvertHere(t, "nodeimages.apps.kruise.io", &v1alpha1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "probe"}})
}

func TestNodeImagesAreDefaultedAndConverted(t *testing.T) {
	c := serve(t, features.Defaults(featuregates.All()...))
	converted(t)
	secret := v1beta1.SecretReference{Namespace: v1beta1.DefaultConfigNamespace, Name: "registry", Mode: v1beta1.SecretBatch}
	image := newImage("both", secret)
	require.NoError(t, c.Create(t.Context(), image))
	tags := image.Spec.Images["nginx"].Tags
	assert.Equal(t, "1", tags[0].Tag)
	assert.NotNil(t, tags[0].CreatedAt)
	assert.EqualValues(t, 600, *tags[0].PullPolicy.TimeoutSeconds)

	old := &v1alpha1.NodeImage{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(image), old))
	assert.JSONEq(t, `{"kruise-daemon-config/registry":"batch"}`, old.Annotations[v1beta1.SecretModesAnnotation])
	old.Labels = map[string]string{"seen": "by-v1alpha1"}
	require.NoError(t, c.Update(t.Context(), old))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(image), image))
	assert.Equal(t, secret, image.Spec.Images["nginx"].PullSecrets[0])
	assert.Equal(t, "by-v1alpha1", image.Labels["seen"])
	assert.Empty(t, image.Annotations)

	delete(old.Annotations, v1beta1.SecretModesAnnotation)
	err := c.Update(t.Context(), old)
	assert.True(t, apierrors.IsInvalid(err), err)
	require.ErrorContains(t, err, "v1alpha1 cannot express mode batch of secret kruise-daemon-config/registry of image nginx")
	old.Annotations = map[string]string{conversion.AcceptLossAnnotation: "true"}
	require.NoError(t, c.Update(t.Context(), old))
}

func TestNodeImagesAreRefusedWithWords(t *testing.T) {
	c := serve(t, features.Defaults(featuregates.All()...))
	converted(t)
	full := newImage("full")
	for i := range v1beta1.MaxImagesPerNode {
		full.Spec.Images[fmt.Sprint("image-", i)] = full.Spec.Images["nginx"]
	}
	forEver := &v1alpha1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "forever"}, Spec: v1alpha1.NodeImageSpec{
		Images: map[string]v1alpha1.ImageSpec{"nginx": {Tags: []v1alpha1.ImageTagSpec{{Tag: "1"}}}},
	}}
	cases := []struct {
		name   string
		object client.Object
		want   string
	}{
		{"too many", full, "spec.images: Too many: 257: at most 256 images per node"},
		{"for ever, in the old version", forEver, "spec.images[nginx].tags[0].pullPolicy.ttlSecondsAfterFinished: Required value"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			err := c.Create(t.Context(), tc.object)
			assert.True(t, apierrors.IsInvalid(err), err)
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

func TestKindsOfTheAgentAreForbiddenWithoutIt(t *testing.T) {
	c := serve(t, features.Defaults(featuregates.All()...).With(features.KruiseDaemon, false))
	givenCRDs(t)
	request := &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "restart"},
		Spec:       v1beta1.ContainerRecreateRequestSpec{PodName: "web", Containers: []v1beta1.ContainerToRecreate{{Name: "main"}}},
	}
	for _, object := range []client.Object{newImage("off"), request} {
		err := c.Create(t.Context(), object)
		assert.True(t, apierrors.IsForbidden(err), err)
		assert.ErrorContains(t, err, "feature-gate KruiseDaemon is not enabled")
	}
}

// The jobs of many nodes end at the same time, and each has its sidecars ended by a request.
func TestManyRequestsAtOnceAreTaken(t *testing.T) {
	c := serve(t, features.Defaults(featuregates.All()...))
	givenCRDs(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "of-many-requests"}}
	require.NoError(t, c.Create(t.Context(), node))
	pod := gen.Pod("web", gen.Image("main", "app:1"))
	pod.Namespace, pod.UID, pod.ResourceVersion, pod.Spec.NodeName = env.Namespace(t), "", "", node.Name
	require.NoError(t, c.Create(t.Context(), pod))
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main", Image: "app:1", ImageID: "app@1", ContainerID: "containerd://main",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}}
	require.NoError(t, c.Status().Update(t.Context(), pod))
	create := func(i int) error {
		return client.IgnoreAlreadyExists(c.Create(t.Context(), &v1beta1.ContainerRecreateRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: fmt.Sprint("restart-", i)},
			Spec:       v1beta1.ContainerRecreateRequestSpec{PodName: pod.Name, Containers: []v1beta1.ContainerToRecreate{{Name: "main"}}},
		}))
	}
	var all sync.WaitGroup
	errs := make([]error, 150)
	for i := range errs {
		all.Go(func() { errs[i] = create(i) })
	}
	all.Wait()
	for i, err := range errs {
		assert.NotContains(t, fmt.Sprint(err), "too many requests")
		if err != nil { // a busy API server did not answer in time
			await.Until(t, func(collect *assert.CollectT) { assert.NoError(collect, create(i)) })
		}
	}
}

// prioritized returns a pod whose containers have an order.
func prioritized(namespace, name string) *corev1.Pod {
	pod := gen.Pod(name, gen.Image("main", "app:1"), gen.Image("proxy", "app:1"))
	pod.Namespace, pod.UID, pod.ResourceVersion = namespace, "", ""
	pod.Spec.Containers[1].Env = []corev1.EnvVar{{Name: contract.ContainerPriorityEnv, Value: "1"}}
	return pod
}

func barriers(pod *corev1.Pod) int {
	n := 0
	for _, c := range pod.Spec.Containers {
		for _, e := range c.Env {
			if e.Name == contract.ContainerBarrierEnv {
				n++
			}
		}
	}
	return n
}

func TestPodsGetBarriersUnlessTheGateIsOff(t *testing.T) {
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			c := serve(t, features.Defaults(featuregates.All()...).With(features.PodWebhook, on))
			pod := prioritized(env.Namespace(t), "web")
			require.NoError(t, c.Create(t.Context(), pod))
			assert.Equal(t, on, barriers(pod) == 2)
		})
	}
}

// The operator is down: no pod waits for it but those that ask for what only it can do.
func TestOtherPodsDoNotNeedTheOperator(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	namespace := env.Namespace(t)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "flotilla-system"}}
	marked := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "marked-", Labels: map[string]string{"control-plane": ""}}}
	env.Share(t, system)
	require.NoError(t, c.Create(t.Context(), marked))

	plain := prioritized(namespace, "plain")
	plain.Spec.Containers[1].Env = nil
	require.NoError(t, c.Create(t.Context(), plain))
	for _, other := range []string{"kube-system", system.Name, marked.Name} {
		require.NoError(t, c.Create(t.Context(), prioritized(other, "ordered")), other)
	}
	require.ErrorContains(t, c.Create(t.Context(), prioritized(namespace, "ordered")), "mpod.kb.io")
	ordered := prioritized(namespace, "annotated")
	ordered.Spec.Containers[1].Env = nil
	ordered.Annotations = map[string]string{contract.ContainerLaunchPriorityAnnotation: contract.LaunchOrdered}
	assert.ErrorContains(t, c.Create(t.Context(), ordered), "mpod.kb.io")
}
