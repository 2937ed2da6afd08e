package execute

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestInParallelCallsAllWithinTheLimit(t *testing.T) {
	for _, slow := range []bool{false, true} {
		var calls, running, most atomic.Int64
		n := inParallel(100, 8, slow, func(int) verdict {
			calls.Add(1)
			now := running.Add(1)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			running.Add(-1)
			return succeeded
		})
		assert.Equal(t, 100, n)
		assert.EqualValues(t, 100, calls.Load())
		assert.LessOrEqual(t, most.Load(), int64(8))
	}
}

func TestInParallelStopsStartingAfterAStop(t *testing.T) {
	assert.Equal(t, 1, inParallel(100, 8, true, func(int) verdict { return stop }), "a slow start tries one first")
	assert.Equal(t, 100, inParallel(100, 8, false, func(int) verdict { return failed }), "a failure of one stops others")
	started := inParallel(100, 1, true, func(i int) verdict {
		if i == 3 {
			return stop
		}
		return succeeded
	})
	assert.Equal(t, 4, started)
}

func TestSlowStartDoublesPerRoundTrip(t *testing.T) {
	arrived, answer := make(chan struct{}), make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		inParallel(15, 100, true, func(int) verdict {
			arrived <- struct{}{}
			<-answer
			return succeeded
		})
	}()
	for _, batch := range []int{1, 2, 4, 8} {
		for range batch {
			<-arrived
		}
		select {
		case <-arrived:
			t.Fatalf("more than %d calls under way", batch)
		case <-time.After(time.Millisecond):
		}
		for range batch {
			answer <- struct{}{}
		}
	}
	<-ended
}

func TestClassify(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	webhook := func(code int32, reason metav1.StatusReason, text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: text}}
	}
	slow := apierrors.NewTooManyRequests("slow down", 3)
	tests := map[string]struct {
		err        error
		want       State
		retryAfter time.Duration
		doubtful   bool
	}{
		"conflict":            {err: apierrors.NewConflict(pods, "a", errors.New("changed")), want: Stale},
		"gone":                {err: apierrors.NewNotFound(pods, "a"), want: Stale},
		"quota":               {err: apierrors.NewForbidden(pods, "a", errors.New("exceeded quota: q")), want: Blocked},
		"permission":          {err: apierrors.NewForbidden(pods, "a", errors.New(`User "u" cannot patch resource "pods" in API group ""`)), want: Failed},
		"webhook, 403":        {err: webhook(http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "w" denied the request: no`), want: Blocked},
		"webhook, 500":        {err: webhook(http.StatusInternalServerError, "", `admission webhook "w" denied the request: no`), want: Blocked},
		"webhook is down":     {err: webhook(http.StatusInternalServerError, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "w": timeout`), want: Blocked},
		"policy":              {err: webhook(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `pods "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`), want: Blocked},
		"too many":            {err: slow, want: Blocked, retryAfter: 3 * time.Second},
		"server error":        {err: apierrors.NewInternalError(errors.New("etcd")), want: Failed, doubtful: true},
		"server unavailable":  {err: apierrors.NewServiceUnavailable("later"), want: Failed, doubtful: true},
		"network unreachable": {err: errors.New("connection refused"), want: Failed, doubtful: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := classify(test.err)
			assert.Equal(t, test.want, got.State)
			assert.Equal(t, test.retryAfter, got.retryAfter)
			assert.Equal(t, test.doubtful, isDoubtful(test.err))
		})
	}
}
