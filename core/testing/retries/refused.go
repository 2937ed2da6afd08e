package retries

import (
	"errors"
	"fmt"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
)

// Refused is a kind of write that the server refuses for a while.
type Refused struct {
	// Write is the kind of write, one of WriteKinds, or the Right of one: all writes that need it.
	Write string
	// Code is the answer's status code, NoRight, ByBudget, or 0 for no answer: the write may be done or not.
	Code int
	// From and Until are moments since the beginning of the world.
	From, Until time.Duration
}

var errRefused = errors.New("injected fault")

// NoRight is the answer, with code 403, of a server on which the operator has no permission (RBAC) for such writes.
const NoRight = -403

// ByBudget is the answer, with code 403, of a disruption budget.
const ByBudget = -1

// WriteKinds returns the kinds of writes that plans want; those of the workload's own kind are of a Workload.
func WriteKinds() []string {
	return []string{
		"create Pod", "delete Pod", "patch metadata of Pod", "patch owners of Pod",
		"patch spec of Pod", "patch status of Pod", "patch resize of Pod",
		"create PersistentVolumeClaim", "delete PersistentVolumeClaim", "patch metadata of PersistentVolumeClaim",
		"patch owners of PersistentVolumeClaim", "patch spec of PersistentVolumeClaim",
		"create ControllerRevision", "delete ControllerRevision", "patch number of ControllerRevision", "patch owners of ControllerRevision",
		"patch spec of Workload", "patch status of Workload",
	}
}

// Right returns what a role must allow for a kind of write.
func Right(kind string) string {
	part, of, isPatch := strings.Cut(strings.TrimPrefix(kind, "patch "), " of ")
	switch {
	case !isPatch:
		return kind
	case part == "status" || part == "resize":
		return "patch " + of + "/" + part
	}
	return "patch " + of
}

// AnswerCodes returns the answers of Refused.
func AnswerCodes() []int { return []int{403, NoRight, ByBudget, 409, 422, 429, 500, 0} }

// covers reports whether this kind of write is refused at a moment since the beginning of the world.
func (f Refused) covers(kind string, since time.Duration) bool {
	return (f.Write == kind || f.Write == Right(kind)) && since >= f.From && since < f.Until
}

// answer returns the answer to a request.
func (f Refused) answer(r operator.Request) error {
	switch resource, name := cluster.ResourceOf(r.Object), r.Object.GetName(); f.Code {
	case NoRight:
		verb, _, _ := strings.Cut(r.Kind, " ")
		return apierrors.NewForbidden(resource, name, fmt.Errorf("User %q cannot %s resource %q", cluster.OperatorActor, verb, resource.Resource)) //nolint:staticcheck // the server's words
	case ByBudget:
		return RefusedByBudget(r.Object, errRefused)
	case 409:
		return apierrors.NewConflict(resource, name, errRefused)
	case 422:
		return apierrors.NewInvalid(r.Object.GetObjectKind().GroupVersionKind().GroupKind(), name, nil)
	case 429:
		return apierrors.NewTooManyRequests(`admission webhook "limit" denied the request: refused`, 1)
	case 500:
		return apierrors.NewInternalError(errRefused)
	case 0:
		return apierrors.NewTimeoutError("no answer", 0)
	default:
		return apierrors.NewForbidden(resource, name, errRefused)
	}
}

// RefusedByBudget is a budget's refusal to write the object.
func RefusedByBudget(o action.Object, why error) error {
	answer := apierrors.NewForbidden(cluster.ResourceOf(o), o.GetName(), why)
	answer.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	return answer
}
