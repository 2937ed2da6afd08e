package testenv

import (
	"context"
	"crypto/tls"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

// AllowPods makes the API server ask a webhook about creations and evictions of pods in the namespace, which allows all of
// them: what a call alone costs. It returns when the webhook is asked. The environment must have webhooks of its own.
func (e *Environment) AllowPods(t testing.TB, namespace string) {
	t.Helper()
	var asked atomic.Int64
	url := e.serveAdmission(t, func(context.Context, admission.Request) admission.Response {
		asked.Add(1)
		return admission.Allowed("")
	})
	hook := admissionregistrationv1.ValidatingWebhook{
		Name:                    "allow.example.com",
		AdmissionReviewVersions: []string{"v1"},
		ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: e.envtest.WebhookInstallOptions.LocalServingCAData},
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{
				APIGroups:   []string{""},
				APIVersions: []string{"v1"},
				Resources:   []string{"pods", "pods/eviction"},
			},
		}},
		SideEffects:    new(admissionregistrationv1.SideEffectClassNone),
		FailurePolicy:  new(admissionregistrationv1.Ignore),
		TimeoutSeconds: new(int32(5)), // as those of operators
	}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "allow-"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{hook},
	}
	c := e.Client(t)
	require.NoError(t, c.Create(t.Context(), configuration))
	t.Cleanup(func() {
		assert.NoError(t, client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), configuration)))
	})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "probe-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "probe"}}},
	}
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Create(t.Context(), pod.DeepCopy(), client.DryRunAll))
		assert.Positive(check, asked.Load())
	}, "the API server does not notice the webhook")
}

// serveAdmission answers admission requests until the test ends, with the certificate that the environment has for webhooks.
func (e *Environment) serveAdmission(t testing.TB, answer admission.HandlerFunc) (url string) {
	t.Helper()
	folder := e.envtest.WebhookInstallOptions.LocalServingCertDir
	certificate, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(&admission.Webhook{Handler: answer})
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL + "/allow"
}
