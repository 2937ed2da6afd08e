package containerrestart

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/plan/refusals"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"
)

// A request is deleted when its hook has ended and the signal was not sent yet: the stop is given up, and nothing is
// remembered of the pod.
func TestAStopWhoseRequestIsGoneIsGivenUp(t *testing.T) {
	key := types.NamespacedName{Namespace: "shop", Name: "uid-1"}
	r := &reconciler{
		Controller: &base.Controller{Refusals: &refusals.Tracker{}, Clock: clock.RealClock{}},
		memory:     memory{pods: map[types.NamespacedName]*pod{}},
	}
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r", UID: "r"}}
	kill := &node.Kill{Request: request, ContainerID: "containerd://c1"}
	r.memory.begin(t.Context(), key, kill, node.InHook, func(context.Context) {
		r.memory.hookEnded(key, kill.ContainerID, time.Second, nil)
	})
	r.memory.group.Wait()
	s, _, err := r.snapshot(t.Context(), key, nil)
	require.NoError(t, err)
	todo := node.Compute(s)
	assert.Equal(t, []string{kill.ContainerID}, todo.Abort)
	assert.Positive(t, todo.RequeueAfter, "the next pass forgets the pod")
	r.memory.abort(key, todo.Abort)
	r.memory.Forget(key)
	assert.Empty(t, r.memory.pods)
}

// A container that is not gone in time may be gone soon: the next pass looks, and the request has not failed.
func TestAStopThatIsLateIsLookedAtAgain(t *testing.T) {
	key := types.NamespacedName{Namespace: "shop", Name: "uid-1"}
	request := &v1beta1.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r", UID: "r"}}
	kill := &node.Kill{Request: request, ContainerID: "containerd://c1"}
	for err, stays := range map[error]bool{
		nil: true, errors.New("no such container"): true,
		fmt.Errorf("StopContainer: %w", status.Error(codes.DeadlineExceeded, "late")): false,
	} {
		m := memory{pods: map[types.NamespacedName]*pod{}}
		m.begin(t.Context(), key, kill, node.Told, func(context.Context) { m.stopEnded(key, kill.ContainerID, err, time.Now()) })
		m.group.Wait()
		assert.Equal(t, stays, m.of(key).stops[kill.ContainerID] != nil, "%v", err)
	}
}
