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
)

// A write that is refused is tried again after firstPause, then after twice as long, at most lastPause. No event
// brings it back earlier, unless another version was in the way, and that not for the excused'th time in a row.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
	excused    = 3
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
		return lastPause
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
	return r.memory.refuse(write.Request, outdated, r.Clock.Now())
}

// refusal is what is known of a request whose last write did not succeed.
type refusal struct {
	version  string // that was judged
	outdated bool   // another version may do better
	tries    int    // in a row
	pause    time.Duration
	until    time.Time
}

// pauseOf is how long to write nothing into a request.
func (m *memory) pauseOf(request *v1beta1.ContainerRecreateRequest, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, refused := m.of(keyOf(request)).refused[request.UID]
	if !refused || last.outdated && last.tries < excused && last.version != request.ResourceVersion {
		return 0
	}
	return max(last.until.Sub(now), 0)
}

// refuse notes a write that did not succeed, and returns when to try again.
func (m *memory) refuse(request *v1beta1.ContainerRecreateRequest, outdated bool, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(keyOf(request))
	last := p.refused[request.UID]
	pause := min(max(2*last.pause, firstPause), lastPause)
	p.refused[request.UID] = refusal{
		version: request.ResourceVersion, outdated: outdated, tries: last.tries + 1, pause: pause, until: now.Add(pause),
	}
	return pause
}
