package nodeimage

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/controllers/execute"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/plan"
)

// agentGrace is how long the agent has for bringing numbers and leftovers in order itself. Both would
// otherwise write the same after every change of the spec.
const agentGrace = 5 * time.Second

// writeStatus patches the status when it changed, and tells of the pulls that are given up. The returned time
// is when to look again.
func (r *reconciler) writeStatus(ctx context.Context, snap plan.Snapshot, todo plan.Plan) (again time.Duration, err error) {
	if todo.Status == nil {
		return 0, nil
	}
	if equality.Semantic.DeepEqual(&snap.Image.Status, todo.Status) {
		r.agents.heard(snap.Name)
		return 0, nil
	}
	if left := r.agents.left(snap.Name, snap.Now); len(todo.Failures) == 0 && left > 0 {
		return left, nil
	}
	after := snap.Image.DeepCopy()
	after.Status = *todo.Status
	wrote, again, err := r.PatchStatus(ctx, snap.Image, after)
	if wrote {
		r.agents.heard(snap.Name)
		r.tell(snap, todo)
	}
	return again, err
}

// tell tells of failures on the NodeImage and on the owners of each tag.
func (r *reconciler) tell(snap plan.Snapshot, todo plan.Plan) {
	var all []action.Notice
	byOwner := map[corev1.ObjectReference][]action.Notice{}
	for _, failure := range todo.Failures {
		notice := failure.Notice(snap.Name)
		all = append(all, notice)
		for _, owner := range failure.Owners {
			byOwner[owner] = append(byOwner[owner], notice)
		}
	}
	r.Events.Tell(snap.Image, all, &execute.Outcome{})
	for owner, notices := range byOwner {
		r.Events.Tell(objectOf(owner), notices, &execute.Outcome{})
	}
}

// objectOf is an object that events can be about.
func objectOf(ref corev1.ObjectReference) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID, ResourceVersion: ref.ResourceVersion,
	}}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	return object
}

// agents remembers since when a status has been waiting for its agent.
type agents struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// left is how long the agent of a node has left.
func (a *agents) left(node string, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, waiting := a.since[node]
	if !waiting {
		a.since[node], since = now, now
	}
	return agentGrace - now.Sub(since)
}

// heard says that nothing waits for the agent of a node.
func (a *agents) heard(node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, node)
}
