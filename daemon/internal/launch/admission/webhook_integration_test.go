package admission_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/contract"
	coreadmission "github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/daemon/internal/launch/admission"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{Webhooks: envtest.WebhookInstallOptions{
		Paths: []string{"../../../config/webhook"}, MutatingWebhooks: more(),
	}})
}

// more returns an injector that comes after the shipped webhooks, so that those are called once more, and the webhook
// of a component.
func more() []*admissionregistrationv1.MutatingWebhookConfiguration {
	return []*admissionregistrationv1.MutatingWebhookConfiguration{
		configuration("z-inject", "/inject", `has(object.metadata.labels) && 'inject' in object.metadata.labels`),
		configuration("z-gate", "/mutate-pod-readiness-gate", `has(object.metadata.labels) && 'gate' in object.metadata.labels`),
	}
}

func configuration(name, path, condition string) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: name + ".flotilla.test", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ReinvocationPolicy: new(admissionregistrationv1.IfNeededReinvocationPolicy),
			FailurePolicy:      new(admissionregistrationv1.Fail),
			MatchConditions:    []admissionregistrationv1.MatchCondition{{Name: "asks", Expression: condition}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: "flotilla-system", Name: "daemon-webhook", Path: &path},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
}

// serve answers the shipped webhooks for pods, and one of somebody who injects a container, until the test
// ends.
func serve(t *testing.T) client.Client {
	t.Helper()
	mgr := env.Manager(t)
	w := admission.Webhook{Suffix: func() string { return utilrand.String(5) }}
	pods := coreadmission.NewKind("", "Pod", coreadmission.Hub[corev1.Pod]("v1"))
	for _, e := range []coreadmission.Endpoint{w.Launch(), w.ReadinessGate(), {Path: "/inject", Handler: pods.Defaulting(inject)}} {
		mgr.GetWebhookServer().Register(e.Path, e.Handler)
	}
	env.Start(t, mgr)
	return env.Client(t)
}

func sent(t *testing.T, options ...gen.PodOption) *corev1.Pod {
	t.Helper()
	pod := gen.Pod("web", options...)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: pod.Name, GenerateName: pod.GenerateName, Labels: pod.Labels, Annotations: pod.Annotations},
		Spec:       pod.Spec,
	}
}

func TestWebhooks(t *testing.T) {
	c := serve(t)
	t.Run("barriers", func(t *testing.T) {
		pod := sent(t, variables("log", priority("10")))
		require.NoError(t, c.Create(t.Context(), pod))
		assert.Equal(t, "p_0 p_10", keys(pod))
	})
	t.Run("a generated name", func(t *testing.T) {
		pod := sent(t, ordered(), variables("log"), gen.Change(func(pod *corev1.Pod) { pod.Name, pod.GenerateName = "", "web-" }))
		require.NoError(t, c.Create(t.Context(), pod))
		assert.Len(t, pod.Name, len("web-12345"))
		assert.Equal(t, pod.Name+"-barrier", pod.Spec.Containers[0].Env[0].ValueFrom.ConfigMapKeyRef.Name)
	})
	t.Run("after an injector", func(t *testing.T) {
		pod := sent(t, ordered(), variables("log"), gen.Label("inject", "yes"))
		require.NoError(t, c.Create(t.Context(), pod))
		assert.Equal(t, "p_0 p_-1 p_-2", keys(pod))
		for _, container := range pod.Spec.Containers {
			assert.Len(t, container.Env, 1, container.Name)
		}
	})
	t.Run("a refusal", func(t *testing.T) {
		err := c.Create(t.Context(), sent(t, variables("log", priority("high"))))
		assert.True(t, apierrors.IsInvalid(err))
		require.ErrorContains(t, err, `spec.containers[1].env[0].value: Invalid value: "high": must be an integer`)
	})
	t.Run("a copy of a running pod", func(t *testing.T) {
		pod := sent(t, variables("log", priority("10")), gen.Annotation(contract.ContainerLaunchPriorityCompletedAnnotation, "true"))
		require.NoError(t, c.Create(t.Context(), pod))
		twin := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "twin", Annotations: pod.Annotations}, Spec: *pod.Spec.DeepCopy()}
		require.NoError(t, c.Create(t.Context(), twin))
		assert.Equal(t, "p_0 p_10", keys(twin))
		assert.Equal(t, "twin-barrier", twin.Spec.Containers[0].Env[0].ValueFrom.ConfigMapKeyRef.Name)
	})
	t.Run("readiness gate", func(t *testing.T) {
		pod := sent(t, gen.Label("gate", "yes"))
		require.NoError(t, c.Create(t.Context(), pod))
		assert.Equal(t, []corev1.PodReadinessGate{{ConditionType: contract.KruisePodReady}}, pod.Spec.ReadinessGates)
	})
	t.Run("nothing for a pod that asks for nothing", func(t *testing.T) {
		pod := sent(t, variables("log", corev1.EnvVar{Name: "A", Value: "1"}))
		require.NoError(t, c.Create(t.Context(), pod))
		assert.NotContains(t, pod.String(), "barrier")
	})
}

// inject puts a container into a pod as service meshes do.
func inject(_ context.Context, req coreadmission.Request[*corev1.Pod]) error {
	for _, c := range req.New.Spec.Containers {
		if c.Name == "proxy" {
			return nil
		}
	}
	gen.Image("proxy", "proxy:1")(req.New)
	return nil
}
