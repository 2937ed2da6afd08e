package admission

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Drains give up an eviction that is answered with anything but 429.
func TestAnEvictionThatCannotBeJudgedIsTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		judge func(context.Context) error
		code  int32
	}{
		"an error":        {func(context.Context) error { return errors.New("no answer") }, http.StatusTooManyRequests},
		"no service":      {func(context.Context) error { return apierrors.NewServiceUnavailable("starting") }, http.StatusTooManyRequests},
		"a panic":         {func(context.Context) error { panic("nobody thought of it") }, http.StatusTooManyRequests},
		"no answer":       {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, http.StatusTooManyRequests},
		"a refusal":       {func(context.Context) error { return apierrors.NewForbidden(schema.GroupResource{}, "a", nil) }, http.StatusForbidden},
		"a grant":         {func(context.Context) error { return nil }, http.StatusOK},
		"no more budgets": {func(context.Context) error { return apierrors.NewTooManyRequests("wait", 0) }, http.StatusTooManyRequests},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judge := Evictions().Validating(func(ctx context.Context, _ Request[*policyv1.Eviction]) (Findings, error) {
				return Findings{}, c.judge(ctx)
			})
			review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
				Operation: admissionv1.Create, SubResource: "eviction", Namespace: "default", Name: "a",
				Kind: metav1.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}, Object: extension(`{}`),
			}}
			var answer admissionv1.AdmissionReview
			postTo(t, "/?timeout=600ms", newMainHandler(nil).Subresource("eviction", judge), review, &answer)
			require.NotNil(t, answer.Response)
			assert.Equal(t, c.code == http.StatusOK, answer.Response.Allowed)
			assert.Equal(t, c.code, answer.Response.Result.Code, answer.Response.Result)
		})
	}
}
