package progress

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

var pods = schema.GroupResource{Resource: "pods"}

func status(code int32, reason metav1.StatusReason, text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: text}}
}

// tooSmall is the refusal of a resize to more than the node has, from Kubernetes 1.36 on.
func tooSmall() error {
	err := apierrors.NewForbidden(pods, "a", errors.New("node didn't have enough allocatable resources"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: NodeCapacityCause}}
	return err
}

func terminating() error {
	err := apierrors.NewForbidden(pods, "a", errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func TestAnswersOfTheServer(t *testing.T) {
	tests := map[string]struct {
		err         error
		want        State
		retryAfter  time.Duration
		doubtful    bool
		gone, fatal bool
		busy        bool
	}{
		"conflict":              {err: apierrors.NewConflict(pods, "a", errors.New("changed")), want: Stale},
		"not found":             {err: apierrors.NewNotFound(pods, "a"), want: Stale, gone: true},
		"gone":                  {err: status(http.StatusGone, metav1.StatusReasonGone, "gone"), want: Stale, gone: true},
		"exists already":        {err: apierrors.NewAlreadyExists(pods, "a"), want: Stale, gone: true},
		"namespace that ends":   {err: terminating(), want: Stale, gone: true, fatal: true},
		"quota":                 {err: apierrors.NewForbidden(pods, "a", errors.New("exceeded quota: q")), want: Blocked},
		"invalid":               {err: apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), want: Blocked},
		"bad request":           {err: apierrors.NewBadRequest("what?"), want: Blocked},
		"too large":             {err: apierrors.NewRequestEntityTooLargeError("too large"), want: Blocked},
		"webhook, 403":          {err: status(http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "w" denied the request: no`), want: Blocked},
		"webhook, 500":          {err: status(http.StatusInternalServerError, "", `admission webhook "w" denied the request: no`), want: Blocked},
		"webhook is down":       {err: status(http.StatusInternalServerError, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "w": timeout`), want: Blocked},
		"policy":                {err: status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `pods "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`), want: Blocked},
		"a server that is busy": {err: apierrors.NewTooManyRequests("storage is (re)initializing", 3), want: Failed, fatal: true, busy: true, retryAfter: 3 * time.Second},
		"a server that is busy, and names no pause": {err: apierrors.NewTooManyRequestsError("later"), want: Failed, fatal: true, busy: true, retryAfter: time.Second},
		"a budget, eviction":                        {err: noEviction(3), want: Blocked, retryAfter: 3 * time.Second},
		"webhook, 429":                              {err: status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, `admission webhook "w" denied the request: no`), want: Blocked},
		"permission":                                {err: apierrors.NewForbidden(pods, "a", errors.New(`User "u" cannot patch resource "pods" in API group ""`)), want: Failed, fatal: true},
		"reason like a verb":                        {err: apierrors.NewForbidden(pods, "a", errors.New("pods of this team cannot run here")), want: Blocked},
		"server error":                              {err: apierrors.NewInternalError(errors.New("etcd")), want: Failed, fatal: true, doubtful: true},
		"server unavailable":                        {err: apierrors.NewServiceUnavailable("later"), want: Failed, fatal: true, doubtful: true},
		"no answer in time":                         {err: apierrors.NewTimeoutError("no answer", 2), want: Failed, fatal: true, doubtful: true, retryAfter: 2 * time.Second},
		"no network":                                {err: errors.New("connection refused"), want: Failed, fatal: true, doubtful: true},
		"type that none takes":                      {err: status(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "no such patch"), want: Failed, fatal: true},
		"conflict with context":                     {err: fmt.Errorf("patch pod a: %w", apierrors.NewConflict(pods, "a", errors.New("changed"))), want: Stale},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, Outcome{State: test.want, Err: test.err, retryAfter: test.retryAfter, gone: test.gone, fatal: test.fatal, busy: test.busy}, OutcomeOf(test.err))
			assert.Equal(t, test.doubtful, MayHaveSucceeded(test.err))
		})
	}
	assert.Equal(t, Outcome{State: Done}, OutcomeOf(nil))
}

func TestCollisionsTellWhoseTheNameIs(t *testing.T) {
	exists := apierrors.NewAlreadyExists(pods, "a")
	ownedBy := func(name string, controller bool) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", OwnerReferences: []metav1.OwnerReference{{Kind: "CloneSet", Name: name, UID: types.UID("of-" + name), Controller: &controller}}}}
	}
	own := NameTaken("create pod a", exists, ownedBy("web", true), "of-web")
	assert.Equal(t, Outcome{State: Stale, Err: exists, gone: true}, own)
	for holder, found := range map[string]*corev1.Pod{"belongs to CloneSet other": ownedBy("other", true), "has no controller": ownedBy("web", false)} {
		taken := NameTaken("create pod a", exists, found, "of-web")
		assert.Equal(t, Blocked, taken.State)
		assert.True(t, taken.isolated)
		require.ErrorIs(t, taken.Err, ErrNameTaken)
		assert.EqualError(t, taken.Err, "create pod a: it exists already and "+holder)
	}
}

func TestClaimsInUseAreNoFailure(t *testing.T) {
	r := ClaimMounted("delete persistentvolumeclaim data", "web-0")
	assert.Equal(t, Blocked, r.State)
	assert.True(t, r.ClaimMounted())
	require.EqualError(t, r.Err, "delete persistentvolumeclaim data: it is mounted by pod web-0")
	other := OutcomeOf(apierrors.NewBadRequest("what?"))
	assert.False(t, other.ClaimMounted())
}

func TestRehearsalsAreLate(t *testing.T) {
	assert.Equal(t, Outcome{State: Done}, DryRunOutcome(nil))
	assert.Equal(t, Outcome{State: Done}, DryRunOutcome(apierrors.NewBadRequest(`admission webhook "w" does not support dry run`)), "the write finds it out")
	r := DryRunOutcome(apierrors.NewBadRequest("what?"))
	assert.Equal(t, Blocked, r.State)
	assert.True(t, r.Late)
	assert.False(t, DryRunOutcome(byBudget()).Late, "a budget refuses the first write")
}

// noEviction is what the server answers to an eviction for a PodDisruptionBudget that asks for a pause of so many seconds.
func noEviction(seconds int) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", seconds)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	return err
}

// byBudget is what a webhook answers for a budget, as the server passes it on.
func byBudget() error {
	err := apierrors.NewForbidden(pods, "web-1", errors.New("2 available, 2 required"))
	err.ErrStatus.Message = `admission webhook "budget.example.com" denied the request: ` + err.ErrStatus.Message
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}
	return fmt.Errorf("patch status of pod web-1: %w", err)
}

// What the memory of refusals is told of an action that is not done.
func TestFailuresThatAreRemembered(t *testing.T) {
	pod := action.Action{Verb: action.Create, GeneratedName: true, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-x7", GenerateName: "web-"}}}
	taken := NameTaken("create pod web-x7", apierrors.NewAlreadyExists(pods, "web-x7"), &corev1.Pod{}, "of-web")
	late := OutcomeOf(noEviction(3))
	late.Late = true
	tests := map[string]struct {
		result Outcome
		want   refusals.Failure
	}{
		"conflict":             {OutcomeOf(apierrors.NewConflict(pods, "a", errors.New("changed"))), refusals.Failure{Conflict: true}},
		"own object":           {OutcomeOf(apierrors.NewAlreadyExists(pods, "a")), refusals.Failure{Conflict: true, Isolated: true}},
		"object of another":    {taken, refusals.Failure{Isolated: true}},
		"refusal":              {OutcomeOf(apierrors.NewForbidden(pods, "a", errors.New("quota"))), refusals.Failure{}},
		"a budget":             {OutcomeOf(byBudget()), refusals.Failure{ByBudget: true}},
		"late refusal":         {late, refusals.Failure{Late: true, ByBudget: true, RetryAfter: 3 * time.Second}},
		"lost answer":          {OutcomeOf(errors.New("connection lost")), refusals.Failure{MayHaveSucceeded: true}},
		"want of permission":   {OutcomeOf(apierrors.NewForbidden(pods, "a", errors.New(`User "u" cannot create resource "pods"`))), refusals.Failure{}},
		"node too small":       {DryRunOutcome(fmt.Errorf("resize pod web-1: %w", tooSmall())), refusals.Failure{Late: true, NodeTooSmall: true, Isolated: true}},
		"claim that is in use": {ClaimMounted("delete persistentvolumeclaim data", "web-0"), refusals.Failure{Isolated: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.result.Action = &pod
			got := test.result.failure()
			if !test.result.ClaimMounted() {
				test.want.Message = test.result.FailureText()
			}
			assert.Equal(t, test.want, got)
		})
	}
	taken.Action = &pod
	assert.Equal(t, "create pod web-: it exists already and has no controller", taken.failure().Message, "a made-up name means nothing")
}
