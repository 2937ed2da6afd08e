package admission

import (
	"context"
	"net/http"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	// evictions is the subresource of pods that evicts them.
	evictions = "eviction"
	// answerBefore is how long before the API server gives up a webhook an eviction is answered.
	answerBefore = 500 * time.Millisecond
)

// Evictions returns the kind of the requests to pods/eviction. Their pod is named by the request, and is not in it.
func Evictions() Kind[*policyv1.Eviction] {
	return NewKind(policyv1.GroupName, "Eviction", Hub[policyv1.Eviction]("v1"),
		Spoke[policyv1.Eviction]("v1beta1", Conversion[*policyv1.Eviction, *policyv1beta1.Eviction]{
			ToHub: func(src *policyv1beta1.Eviction, dst *policyv1.Eviction) error {
				dst.ObjectMeta, dst.DeleteOptions = src.ObjectMeta, src.DeleteOptions
				return nil
			},
			FromHub: func(src *policyv1.Eviction, dst *policyv1beta1.Eviction) error {
				dst.ObjectMeta, dst.DeleteOptions = src.ObjectMeta, src.DeleteOptions
				return nil
			},
		}))
}

// respondToEviction answers 429 where rules fail, panic, or are at work when the API server is about to give up: drains repeat
// an eviction after 429 alone, and end after anything else.
func (h Handler) respondToEviction(r *http.Request, req webhook.Request) webhook.Response {
	ctx := r.Context()
	if patience, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && patience > answerBefore {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience-answerBefore)
		defer cancel()
	}
	answer := h.hook.Handle(ctx, req)
	if answer.Result == nil || answer.Result.Code < http.StatusInternalServerError {
		return answer
	}
	return refusal(apierrors.NewTooManyRequests(answer.Result.Message, 0)).WithWarnings(answer.Warnings...)
}
