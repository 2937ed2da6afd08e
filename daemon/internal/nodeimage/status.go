package nodeimage

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/plan"
)

// agentGrace is how long the manager waits for the agent to correct numbers and remove old states itself. Both would
// otherwise write the same after every change of the spec.
const agentGrace = 5 * time.Second

// reports reports whether the pass writes the status: when it differs and the agent has had its time. Pulls that are
// given up do not wait for the agent. After the time of the agent the plan runs again.
func (p *passes) reports(snap plan.Snapshot, todo *plan.Plan) bool {
	switch {
	case todo.Status == nil:
		return false
	case equality.Semantic.DeepEqual(&snap.Image.Status, todo.Status):
		p.agents.Forget(client.ObjectKeyFromObject(snap.Image))
		return false
	}
	left := p.agents.left(client.ObjectKeyFromObject(snap.Image), snap.Now)
	if len(todo.Failures) > 0 {
		return true
	}
	todo.RequeueWithin(left)
	return left <= 0
}

// notices returns the events about failures, on the NodeImage and on the owners of each tag.
func notices(node string, failures []plan.Failure) (onImage []action.Notice, onOwners []pass.Notices) {
	byOwner := map[corev1.ObjectReference][]action.Notice{}
	for _, failure := range failures {
		notice := failure.Notice(node)
		notice.WithStatus = true
		onImage = append(onImage, notice)
		for _, owner := range failure.Owners {
			byOwner[owner] = append(byOwner[owner], notice)
		}
	}
	for owner, events := range byOwner {
		onOwners = append(onOwners, pass.Notices{Object: &owner, Events: events})
	}
	return onImage, onOwners
}

// agents remembers since when a status has waited for its agent.
type agents struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// left returns how much of agentGrace the agent of a node has left.
func (a *agents) left(node types.NamespacedName, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, waiting := a.since[node]
	if !waiting {
		a.since[node], since = now, now
	}
	return agentGrace - now.Sub(since)
}

// Forget records that nothing waits for the agent of a node.
func (a *agents) Forget(node types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, node)
}
