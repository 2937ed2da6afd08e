package progress

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

var (
	// ErrNameTaken means that an object of another owner has the name of the object to be created.
	ErrNameTaken = errors.New("it exists already")
	// errClaimMounted means that a pod mounts the claim that was to be deleted or to go with another pod.
	errClaimMounted = errors.New("it is mounted")
	// ErrExpired means that the action's deadline has passed.
	ErrExpired = errors.New("the deadline of the action has passed")
)

// NodeCapacityCause is the cause of the answer with which a server refuses, from Kubernetes 1.36 on, the resize of a pod
// to more than its node has.
const NodeCapacityCause metav1.CauseType = "NodeCapacity"

// OutcomeOf returns the outcome of the action for an error of the server, or for none.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Outcome{State: Done}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Outcome{State: Stale, Err: err, gone: true, fatal: true} // the workload is about to go too
	case apierrors.IsConflict(err):
		return Outcome{State: Stale, Err: err}
	case apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err), apierrors.IsGone(err):
		return Outcome{State: Stale, Err: err, gone: true}
	case isBusy(err):
		return Outcome{
			State:      Failed,
			Err:        err,
			fatal:      true,
			busy:       true,
			retryAfter: max(retryAfter(err), time.Second),
		}
	case isRefusal(err):
		isolated := apierrors.HasStatusCause(err, NodeCapacityCause) // one node is no evidence about others
		return Outcome{
			State:      Blocked,
			Err:        err,
			isolated:   isolated,
			retryAfter: retryAfter(err),
		}
	default:
		return Outcome{
			State:      Failed,
			Err:        err,
			fatal:      true,
			retryAfter: retryAfter(err),
		}
	}
}

// Expired is the outcome of an action after its deadline has passed.
func Expired(a *action.Action) Outcome {
	return Outcome{State: Stale, Err: fmt.Errorf("%s: %w", a, ErrExpired)}
}

// NameTaken is the outcome of a create that met the error exists, for the object found under the name. With an
// object of the owner itself the create is stale: the cache does not show the object yet. An object of another owner
// blocks the create for as long as it exists. doing describes the attempted action.
func NameTaken(doing string, exists error, found metav1.Object, owner types.UID) Outcome {
	holder := "has no controller"
	if ref := metav1.GetControllerOfNoCopy(found); ref != nil {
		if ref.UID == owner {
			return OutcomeOf(exists)
		}
		holder = "belongs to " + ref.Kind + " " + ref.Name
	}
	return Outcome{
		State:    Blocked,
		isolated: true,
		Err:      fmt.Errorf("%s: %w and %s", doing, ErrNameTaken, holder),
	}
}

// ClaimMounted is the outcome of an action that would take away a claim which the pod mounts. doing describes the
// attempted action.
func ClaimMounted(doing, pod string) Outcome {
	return Outcome{
		State:    Blocked,
		isolated: true,
		Err:      fmt.Errorf("%s: %w by pod %s", doing, errClaimMounted, pod),
	}
}

// DryRunOutcome returns the outcome of the action for an error of its dry run, or for none. If a webhook allows no dry
// runs, only the write itself shows whether it refuses. A budget that refuses the dry run would have refused the first
// write, too, and in time.
func DryRunOutcome(err error) Outcome {
	if apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run") {
		return Outcome{State: Done}
	}
	r := OutcomeOf(err)
	r.Late = r.State != Done && !isBudget(err)
	return r
}

// isBusy reports whether the server itself has too much to do or fills its caches. That has nothing to do with the
// object.
func isBusy(err error) bool {
	return apierrors.IsTooManyRequests(err) && !isBudget(err) && !isAdmission(err.Error())
}

// isRefusal reports whether the server refuses this change of this object. A change that the operator lacks the
// permission for is an error instead.
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

// isBudget reports whether a disruption budget has refused: answers of a PodUnavailableBudget have the same cause as
// the server's answers about a PodDisruptionBudget.
func isBudget(err error) bool { return apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) }

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

// MayHaveSucceeded reports whether a write that met the error may have happened all the same.
func MayHaveSucceeded(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	return status.Status().Code >= http.StatusInternalServerError && !isAdmission(status.Status().Message)
}

// message is the server's text, without the attempted action.
func message(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
