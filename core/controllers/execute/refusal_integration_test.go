package execute_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

const refusal = "budget b allows no more unavailable pods"

// refuse serves an admission webhook that refuses every write to a pod labelled guarded in the
// namespace, and returns once the API server asks it.
func refuse(t *testing.T, w *world) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Result: &metav1.Status{Code: http.StatusForbidden, Message: refusal},
		}
		_ = json.NewEncoder(out).Encode(review)
	}))
	t.Cleanup(server.Close)
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "guard.example.com", SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.ns}},
			ObjectSelector:    &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "guarded", Operator: metav1.LabelSelectorOpExists}}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
	require.NoError(t, w.Create(t.Context(), hook))
	t.Cleanup(func() { _ = w.Client.Delete(context.Background(), hook) })
	probe := w.pod("probe")
	probe.Labels = map[string]string{"guarded": ""}
	await.Until(t, func(check *assert.CollectT) {
		assert.Error(check, w.Create(t.Context(), probe.DeepCopy(), client.DryRunAll))
	}, "the API server does not ask the webhook")
}

func TestRefusedWritesAreBlockedWithTheWebhooksWords(t *testing.T) {
	w := newWorld(t)
	guarded, free := w.pod("guarded"), w.existing(t, "free")
	guarded.Labels = map[string]string{"guarded": ""}
	require.NoError(t, w.Create(t.Context(), guarded))
	refuse(t, w)
	fresh := []action.Action{create(w.pod("new-1")), create(w.pod("new-2"))}
	for i := range fresh {
		fresh[i].Object.SetLabels(map[string]string{"guarded": ""})
	}

	out := w.Run(t.Context(), w.owner, []action.Step{
		{Actions: fresh, SlowStart: true},
		step(action.Action{Verb: action.Delete, Object: guarded}, label(guarded, "x"), label(free, "x")),
	})

	require.NoError(t, out.Err)
	assert.Equal(t, []progress.State{progress.Blocked, progress.Blocked, progress.Blocked, progress.Done}, states(out),
		"one create is tried, and the refusals keep nothing else back")
	assert.True(t, out.Incomplete)
	require.Len(t, out.Blocked, 3)
	for _, b := range out.Blocked {
		assert.Equal(t, `admission webhook "guard.example.com" denied the request: `+refusal, b.Message)
		assert.Positive(t, b.RetryAfter)
	}
	assert.Equal(t, "guarded", out.Blocked[1].Action.Object.GetName())
}
