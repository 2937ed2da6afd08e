package agent_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/simulate"
)

// refusal is a server that refuses the first writes into requests.
type refusal struct {
	reason metav1.StatusReason
	code   int // 0 is no answer

	mu    sync.Mutex
	times []time.Time
}

const refusedWrites = 4

func (f *refusal) send(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/containerrecreaterequests/") {
		return next.RoundTrip(r)
	}
	f.mu.Lock()
	f.times = append(f.times, time.Now())
	refused := len(f.times) <= refusedWrites
	f.mu.Unlock()
	switch {
	case !refused:
		return next.RoundTrip(r)
	case f.code == 0:
		return nil, context.DeadlineExceeded
	}
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(f.code)
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: f.reason, Code: int32(f.code), Message: "refused",
	}
	if err := json.NewEncoder(answer).Encode(status); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// What the server refuses is tried again after longer and longer pauses, and nothing is stopped meanwhile.
func TestRefusedWritesAreTriedAgainWithPauses(t *testing.T) {
	for name, f := range map[string]*refusal{
		"forbidden": {reason: metav1.StatusReasonForbidden, code: http.StatusForbidden},
		"conflict":  {reason: metav1.StatusReasonConflict, code: http.StatusConflict},
		"invalid":   {reason: metav1.StatusReasonInvalid, code: http.StatusUnprocessableEntity},
		"too many":  {reason: metav1.StatusReasonTooManyRequests, code: http.StatusTooManyRequests},
		"failure":   {reason: metav1.StatusReasonInternalError, code: http.StatusInternalServerError},
		"no answer": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := givenNodeWithoutAgent(t)
			n.runtime = simulate.NewRuntime(t, "containerd", filepath.Join(n.folder, "containerd", "containerd.sock"))
			n.send = f.send
			n.start()
			n.givenManager()
			pod := n.run(n.podNamed("web", "app"))
			phases, _ := n.eventuallyCompleted(n.ask(n.requestFor(pod, "app")))
			assert.Equal(t, []v1beta1.RecreatePhase{succeeded}, phases)
			assert.Equal(t, []string{containerID(pod, "app")}, n.stopped())
			f.mu.Lock()
			defer f.mu.Unlock()
			require.Greater(t, len(f.times), refusedWrites)
			for i, least := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
				assert.GreaterOrEqual(t, f.times[i+1].Sub(f.times[i]), least*9/10, "pause %d", i)
			}
			assert.True(t, n.runtime.Calls("StopContainer")[0].At.After(f.times[refusedWrites]))
		})
	}
}
