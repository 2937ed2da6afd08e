package admission_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{Webhooks: envtest.WebhookInstallOptions{
		ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{configuration()},
	}})
}

func pods() admission.Kind[*corev1.Pod] {
	return admission.NewKind("", "Pod", admission.Hub[corev1.Pod]("v1"))
}

// configuration sends all requests about pods but their creation to the webhook.
func configuration() *admissionregistrationv1.ValidatingWebhookConfiguration {
	rule := func(operation admissionregistrationv1.OperationType, resources ...string) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{operation},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: resources},
		}
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "guard"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "guard.flotilla.test", AdmissionReviewVersions: []string{"v1"},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), FailurePolicy: new(admissionregistrationv1.Fail),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: "flotilla-system", Name: "guard", Path: new(pods().ValidatePath())},
			},
			Rules: []admissionregistrationv1.RuleWithOperations{
				rule(admissionregistrationv1.Update, "pods", "pods/resize", "pods/status"),
				rule(admissionregistrationv1.Delete, "pods"),
				rule(admissionregistrationv1.Create, "pods/eviction"),
			},
		}},
	}
}

// guard refuses what it is asked about, and remembers it.
type guard struct {
	mu    sync.Mutex
	asked []string
}

func (g *guard) note(operation admissionv1.Operation, subresource, name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, string(operation)+" "+subresource+" "+name)
	if subresource == "eviction" {
		return apierrors.NewTooManyRequests("the budget is spent", 0)
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, name, errors.New("the budget is spent"))
}

func (g *guard) validate(_ context.Context, req admission.Request[*corev1.Pod]) (admission.Findings, error) {
	return admission.Findings{Warnings: []string{"guarded"}}, g.note(req.Operation, req.Subresource, req.Old.Name)
}

func (g *guard) judgeEviction(_ context.Context, req admission.Request[*policyv1.Eviction]) (admission.Findings, error) {
	return admission.Findings{Warnings: []string{"guarded"}}, g.note(req.Operation, req.Subresource, req.Name)
}

func TestWhatIsDoneToPodsIsJudged(t *testing.T) {
	mgr := env.Manager(t)
	g := &guard{}
	main := pods().Validating(g.validate)
	evictions := admission.NewKind("policy", "Eviction", admission.Hub[policyv1.Eviction]("v1")).Validating(g.judgeEviction)
	mgr.GetWebhookServer().Register(pods().ValidatePath(), main.Subresource("resize", main).Subresource("status", main).Subresource("eviction", evictions))
	env.Start(t, mgr)

	heard := &testenv.Warnings{}
	config := env.ConfigAs(t, "user")
	config.WarningHandlerWithContext = heard
	ns := env.Namespace(t)
	c := kubernetes.NewForConfigOrDie(config).CoreV1().Pods(ns)
	pod, err := c.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	audit := env.Audit(t)

	tests := []struct {
		asked string
		write func() error
		code  func(error) bool
	}{
		{"UPDATE  web", func() error {
			changed := pod.DeepCopy()
			changed.Spec.Containers[0].Image = "nginx:2"
			_, err := c.Update(t.Context(), changed, metav1.UpdateOptions{})
			return err
		}, apierrors.IsForbidden},
		{"UPDATE resize web", func() error {
			changed := pod.DeepCopy()
			changed.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
			_, err := c.UpdateResize(t.Context(), "web", changed, metav1.UpdateOptions{})
			return err
		}, apierrors.IsForbidden},
		{"UPDATE status web", func() error {
			changed := pod.DeepCopy()
			changed.Status.Conditions = append(changed.Status.Conditions, corev1.PodCondition{Type: "example.com/ready", Status: corev1.ConditionFalse})
			_, err := c.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{})
			return err
		}, apierrors.IsForbidden},
		{"DELETE  web", func() error { return c.Delete(t.Context(), "web", metav1.DeleteOptions{}) }, apierrors.IsForbidden},
		{"CREATE eviction web", func() error {
			return c.EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}})
		}, apierrors.IsTooManyRequests},
	}
	for _, test := range tests {
		t.Run(test.asked, func(t *testing.T) {
			before := len(g.asked)
			err := test.write()
			assert.True(t, test.code(err), "%v", err)
			require.ErrorContains(t, err, "the budget is spent")
			assert.Equal(t, []string{test.asked}, slices.Compact(g.asked[before:]))
			assert.Equal(t, []string{"guarded"}, heard.Heard())
		})
	}
	sent := 0
	for _, r := range audit.Requests(t, "user") {
		if r.Object.Subresource == "eviction" {
			sent++
		}
	}
	assert.Equal(t, 1, sent, "without Retry-After the client does not repeat the eviction")
}
