package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

func named(name string) option {
	return func(r *v1beta1.ContainerRecreateRequest) { r.Name, r.UID = name, "uid-of-"+r.UID }
}

// heard returns a mark of the agent. Its time is the node's.
func heard(seconds int) option {
	return func(r *v1beta1.ContainerRecreateRequest) {
		r.Status.LastHeartbeatTime = new(metav1.NewTime(at(seconds).Add(time.Hour)))
	}
}

func TestTheAgentIsHeardWhenItsMarkChanges(t *testing.T) {
	recreating := phase(v1beta1.RecreateRecreating)
	m := plan.NewMemory()
	see := func(now int, r *v1beta1.ContainerRecreateRequest) [2]time.Time {
		first, last := m.See(r, at(now))
		return [2]time.Time{first, last}
	}
	seen := func(first, last int) [2]time.Time { return [2]time.Time{at(first), at(last)} }
	assert.Equal(t, seen(3, 3), see(3, request()), "what the request says at first tells nothing")
	assert.Equal(t, seen(3, 3), see(5, request()))
	assert.Equal(t, seen(3, 8), see(8, request(recreating, heard(0))))
	assert.Equal(t, seen(3, 8), see(20, request(recreating, heard(0))))
	assert.Equal(t, seen(3, 28), see(28, request(recreating, heard(-300))), "a change counts, not the time")
	waits := request(phase(v1beta1.RecreatePending), named("waits"))
	assert.Equal(t, seen(30, 30), see(30, waits), "no earlier than it was seen")
	assert.Equal(t, seen(3, 48), see(48, request(recreating, heard(20))))
	assert.Equal(t, seen(30, 48), see(50, waits), "the agent works on another request for the pod")
	m.Forget(client.ObjectKeyFromObject(request()))
	assert.Equal(t, seen(30, 48), see(51, waits))
	m.Forget(client.ObjectKeyFromObject(waits))
	assert.Equal(t, seen(60, 60), see(60, waits))
	again := request()
	again.UID = "another"
	see(61, request())
	assert.Equal(t, seen(70, 70), see(70, again), "another one of the name")
}
