package execute

import (
	"errors"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// classify says what an error of the server means for the action.
func classify(err error) Result {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Result{State: Stale, Err: err, gone: true, fatal: true} // the workload is about to go too
	case apierrors.IsConflict(err):
		return Result{State: Stale, Err: err}
	case apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err), apierrors.IsGone(err):
		return Result{State: Stale, Err: err, gone: true}
	case isRefusal(err):
		return Result{State: Blocked, Err: err, retryAfter: retryAfter(err)}
	default:
		return Result{State: Failed, Err: err, fatal: true, retryAfter: retryAfter(err)}
	}
}

// isRefusal says whether the server refuses this change of this object. What it refuses to the
// operator altogether, for want of permission, is an error instead.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	text := status.Status().Message
	switch {
	case isAdmission(text):
		return true
	case apierrors.IsForbidden(err):
		return !strings.Contains(text, " cannot ") || !strings.Contains(text, ` resource "`)
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsTooManyRequests(err)
}

// isAdmission recognizes the API server's words for a webhook or a policy that refuses, with
// whatever code it likes, and for a webhook that does not answer.
func isAdmission(text string) bool {
	return strings.Contains(text, "admission webhook ") && strings.Contains(text, " denied the request") ||
		strings.Contains(text, "ValidatingAdmissionPolicy ") && strings.Contains(text, " denied request") ||
		strings.Contains(text, "failed calling webhook")
}

// retryAfter is the pause that the server asks for, 0 for none.
func retryAfter(err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return 0
}

// isUnrehearsable says that an admission webhook in the way does not let anything be rehearsed.
func isUnrehearsable(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// isDoubtful says whether a create may have happened all the same.
func isDoubtful(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	return status.Status().Code >= http.StatusInternalServerError && !isAdmission(status.Status().Message)
}

// message is the server's text, without what was being done.
func message(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
