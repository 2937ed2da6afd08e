package admission

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-project/flotilla/core/operator/admission"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/conversion"
)

// NewWebhook answers the API server about ImagePullJobs.
func NewWebhook() admission.Webhook[*v1beta1.ImagePullJob] {
	return admission.Webhook[*v1beta1.ImagePullJob]{
		Kind:     conversion.ImagePullJobs(),
		Default:  Default,
		Validate: validate,
		Convert:  conversion.Convert,
	}
}

func validate(_ context.Context, req admission.Request[*v1beta1.ImagePullJob]) (admission.Findings, error) {
	if SecretsChanged(req.New, req.Old) {
		resource := v1beta1.GroupVersion.WithResource("imagepulljobs").GroupResource()
		return admission.Findings{}, apierrors.NewForbidden(resource, req.Name, errors.New("spec.pullSecrets is immutable"))
	}
	return admission.Findings{Errors: Validate(req.New, req.Old)}, nil
}
