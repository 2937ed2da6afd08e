package containerrestart

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
)

// Runtimes read the containers of pods. Runtimes of package cri implement it.
type Runtimes interface {
	Containers(ctx context.Context, namespace, name string, ids []string) ([]cri.Container, error)
	Status(ctx context.Context, containerID string) (cri.Status, error)
}

// Sources are where passes read from.
type Sources struct {
	// Active returns the active requests for the pod of a key, as in the cache.
	Active func(ctx context.Context, key types.NamespacedName) ([]*v1beta1.ContainerRecreateRequest, error)
	// Live reads from the server.
	Live client.Reader
	// Refusals returns the writes for a pod that the server has refused.
	Refusals func(pod client.Object, now time.Time) action.Refusals
	Runtimes Runtimes
	Clock    clock.PassiveClock
}

// Passes read the requests for a pod and its containers, plan, and begin the stops. A key is a pod: its namespace and, in
// place of a name, its UID.
type Passes struct {
	sources Sources
	stops   *stops.Stops
	wake    func(ctx context.Context, key types.NamespacedName)
	memory  memory
}

// NewPasses makes the passes of an agent that has just started. wake requests a pass for a pod, a stop of which has made
// progress.
func NewPasses(sources Sources, stops *stops.Stops, wake func(ctx context.Context, key types.NamespacedName)) *Passes {
	return &Passes{
		sources: sources,
		stops:   stops,
		wake:    wake,
		memory:  memory{pods: map[types.NamespacedName]*pod{}},
	}
}

// Forget drops the facts about a pod without requests and stops.
func (p *Passes) Forget(key types.NamespacedName) { p.memory.Forget(key) }

// Look reads the objects of one pod, and plans.
func (p *Passes) Look(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	made := pass.Pass{Object: podOf(key)}
	requests, err := p.sources.Active(ctx, key)
	if err != nil {
		return made, fmt.Errorf("list requests for pod %s: %w", key.Name, err)
	}
	under := p.stops.Of(key)
	over, err := p.completedRequests(ctx, key, requests, under)
	if err != nil {
		return made, err
	}
	snapshot, containers, err := p.snapshot(ctx, key, slices.Concat(requests, over), under)
	switch {
	case cri.IsUnavailable(err):
		ctrl.LoggerFrom(ctx).Info("Requests wait for the container runtime", "reason", err.Error())
		made.Plan.RequeueWithin(unavailablePeriod)
		return made, nil
	case err != nil:
		return made, err
	case len(snapshot.Requests) == 0 && len(snapshot.Stops) == 0:
		return made, apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("containerrecreaterequests").GroupResource(), key.Name)
	}
	todo := node.Compute(snapshot)
	p.stops.Abort(key, func(id string) bool { return slices.Contains(todo.Abort, id) })
	made.Plan = todo.Plan
	made.Do = func(ctx context.Context, execute func() progress.Result) progress.Result {
		done := execute()
		p.memory.addMaybeBegun(key, todo.Doubtful(&done))
		p.memory.dropStale(key, &done)
		if todo.Hook != nil && todo.Written(todo.Hook, &done) {
			p.hook(ctx, key, todo.Hook, containers)
		}
		if todo.Kill != nil && todo.Written(todo.Kill, &done) {
			p.kill(ctx, key, todo.Kill, containers)
		}
		return done
	}
	return made, nil
}

// snapshot reads the containers of the pod from the runtime. Without requests nothing is read, and stops that have ended
// matter no more.
func (p *Passes) snapshot(
	ctx context.Context, key types.NamespacedName, requests []*v1beta1.ContainerRecreateRequest, under map[string]stops.Stop,
) (node.Snapshot, []cri.Container, error) {
	now := p.sources.Clock.Now()
	s := node.Snapshot{
		PodUID:   types.UID(key.Name),
		Requests: requests,
		Refusals: p.sources.Refusals(podOf(key), now),
		Now:      now,
	}
	var containers []cri.Container
	if len(requests) > 0 {
		all, err := p.sources.Runtimes.Containers(ctx, key.Namespace, requests[0].Spec.PodName, idsOf(requests))
		if err != nil {
			return s, nil, err
		}
		containers = slices.DeleteFunc(all, func(c cri.Container) bool { return c.Pod.UID != s.PodUID })
	} else {
		p.stops.DropEnded(key)
		under = p.stops.Of(key)
	}
	for i := range containers {
		c, err := p.detail(ctx, &containers[i])
		if err != nil {
			return s, nil, err
		}
		s.Containers = append(s.Containers, c)
	}
	p.memory.remember(key, &s)
	s.Stops = stagesOf(under)
	if node.NeedsPodGone(s) {
		var err error
		if s.PodGone, err = p.podGone(ctx, key, requests[0].Spec.PodName); err != nil {
			return s, nil, err
		}
	}
	return s, containers, nil
}

// idsOf returns the IDs of containers that requests for a pod have recorded.
func idsOf(requests []*v1beta1.ContainerRecreateRequest) []string {
	var ids []string
	for _, r := range requests {
		for i := range r.Spec.Containers {
			if c := r.Spec.Containers[i].StatusContext; c != nil {
				ids = append(ids, c.ContainerID)
			}
		}
	}
	return ids
}

// detail adds the times, which are not in the list.
func (p *Passes) detail(ctx context.Context, c *cri.Container) (node.Container, error) {
	out := node.Container{
		Name:         c.Name,
		ID:           c.ID,
		RestartCount: c.RestartCount,
		CreatedAt:    c.CreatedAt,
		Running:      c.State == cri.StateRunning,
		Exited:       c.State == cri.StateExited,
	}
	status, err := p.sources.Runtimes.Status(ctx, c.ID)
	if cri.IsNotFound(err) {
		return out, nil // removed since it was listed
	}
	if err != nil {
		return out, err
	}
	out.StartedAt, out.FinishedAt = status.StartedAt, status.FinishedAt
	return out, nil
}

// graceBegan reports whether the manager has made the pod not ready for a request.
func graceBegan(request *v1beta1.ContainerRecreateRequest) bool {
	return meta.IsStatusConditionTrue(request.Status.Conditions, v1beta1.PreRecreateGrace)
}
