package containerrestart

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/refusal"
)

// write patches the status of a request. It returns 0 when that is done, and otherwise when to look at the
// request again: somebody else has written since, or the server refuses.
func (r *Reconciler) write(ctx context.Context, write node.Write) time.Duration {
	log := ctrl.LoggerFrom(ctx).WithValues("request", client.ObjectKeyFromObject(write.Request))
	if pause := r.memory.pauseOf(write.Request, r.Clock.Now()); pause > 0 {
		return pause
	}
	patch, err := json.Marshal(write.Patch())
	if err != nil {
		log.Error(err, "Status cannot be written")
		return refusal.LastPause
	}
	written := &v1beta1.ContainerRecreateRequest{}
	written.Namespace, written.Name = write.Request.Namespace, write.Request.Name
	err = r.Client.Status().Patch(ctx, written, client.RawPatch(types.MergePatchType, patch))
	outdated := apierrors.IsConflict(err) || apierrors.IsNotFound(err)
	switch {
	case err == nil:
		r.memory.wrote(written)
		return 0
	case outdated:
		r.memory.outdated(keyOf(write.Request), write.Request.UID)
	default:
		log.Error(err, "Status cannot be written")
	}
	return r.memory.refuse(write, outdated, r.Clock.Now())
}

// pauseOf returns how long to write nothing into a request.
func (m *memory) pauseOf(request *v1beta1.ContainerRecreateRequest, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(keyOf(request)).refused[request.UID].Left(request.ResourceVersion, now)
}

// refuse notes a write that did not succeed, and returns when to try again.
func (m *memory) refuse(write node.Write, outdated bool, now time.Time) (pause time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	request := write.Request
	p := m.of(keyOf(request))
	p.begun[request.UID] = p.begun[request.UID] || write.Begins()
	p.refused[request.UID], pause = p.refused[request.UID].Again(request.ResourceVersion, outdated, now)
	return pause
}
