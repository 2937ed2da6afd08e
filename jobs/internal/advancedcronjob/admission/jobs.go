package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/time/rate"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
)

const (
	// dryRunTimeout bounds one question, of which there are two at most: admission has to answer within the webhook's own
	// timeout.
	dryRunTimeout = 4 * time.Second
	// dryRunName is the prefix of the names of Jobs that are never stored, as seen in the audit log.
	dryRunName = "flotilla-dry-run-"
)

// Jobs asks the cluster about templates of Jobs by dry runs, so that the rules and the defaults are from the cluster's
// own version.
type Jobs struct {
	// Client sends the dry runs, and Limit bounds how often.
	Client client.Client
	Limit  *rate.Limiter
}

// Check returns the template with the cluster's defaults, nil if they are unknown, or the errors that the cluster finds
// in it, with paths below at. Rejections by quotas, policies and webhooks are ignored: they apply to the jobs that are
// made. The error carries an API status and means that the cluster did not answer.
func (j Jobs) Check(ctx context.Context, namespace string, template *batchv1.JobTemplateSpec, at *field.Path) (*batchv1.JobTemplateSpec, field.ErrorList, error) {
	ctx, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	if err := j.Limit.Wait(ctx); err != nil {
		return nil, nil, apierrors.NewServiceUnavailable(fmt.Sprintf("too many job templates are being validated; retry: %v", err))
	}
	job := &batchv1.Job{Spec: *template.Spec.DeepCopy()}
	job.Namespace, job.GenerateName = namespace, dryRunName
	job.Labels, job.Annotations = template.Labels, template.Annotations
	err := j.Client.Create(ctx, job, client.DryRunAll)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return withoutIdentity(job), nil, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), strings.Contains(err.Error(), "admission webhook"):
		return nil, nil, nil
	case errors.As(err, &status) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)):
		return nil, podtemplate.ErrorsBelow(at, status.Status()), nil
	}
	return nil, nil, apierrors.NewServiceUnavailable(fmt.Sprintf("the API server could not validate the job template; retry: %v", err))
}

// withoutIdentity returns the template of a Job without the labels and the selector that the server generated for this
// Job.
func withoutIdentity(job *batchv1.Job) *batchv1.JobTemplateSpec {
	template := &batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: job.Labels, Annotations: job.Annotations}, Spec: job.Spec}
	made := []string{batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name"}
	for _, key := range made {
		delete(template.Labels, key)
		delete(template.Spec.Template.Labels, key)
	}
	if m := template.Spec.ManualSelector; m == nil || !*m {
		template.Spec.Selector = nil
	}
	return template
}
