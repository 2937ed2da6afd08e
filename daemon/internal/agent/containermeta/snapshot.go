package containermeta

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
	planmemory "github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
)

// Runtimes read the containers of pods, and their environments. Runtimes of package cri implement it.
type Runtimes interface {
	Containers(ctx context.Context, namespace, name string, ids []string) ([]cri.Container, error)
	Details(ctx context.Context, containerID string) (cri.Status, error)
	Env(ctx context.Context, containerID string) (map[string]string, error)
}

// Sources are where passes read from.
type Sources struct {
	// Pod returns a pod as in the cache.
	Pod func(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error)
	// Live reads from the server.
	Live client.Reader
	// Refusals returns the writes for a pod that the server has refused.
	Refusals func(pod client.Object, now time.Time) action.Refusals
	Runtimes Runtimes
	Clock    clock.PassiveClock
	Metrics  *metrics.Metrics
	// EnvFromMetadata enables reading environments and restarting containers.
	EnvFromMetadata bool
}

// Passes read a pod and its containers, plan, and begin restarts.
type Passes struct {
	sources Sources
	stops   *stops.Stops
	memory  memory
}

// NewPasses makes the passes of an agent that has just started.
func NewPasses(sources Sources, stops *stops.Stops) *Passes {
	return &Passes{
		sources: sources,
		stops:   stops,
		memory:  newMemory(),
	}
}

// Forget drops the remembered facts about a pod that is gone.
func (p *Passes) Forget(key types.NamespacedName) { p.memory.Forget(key) }

// Look reads the objects of one pod, and plans.
func (p *Passes) Look(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	pod, err := p.sources.Pod(ctx, key)
	if err != nil {
		return pass.Pass{}, err
	}
	made := pass.Pass{Object: pod}
	p.stops.Abort(key, func(id string) bool { return !plan.Wants(pod, id) })
	if pod.DeletionTimestamp != nil || !plan.NeedsAnnotation(pod) {
		return made, nil
	}
	snapshot, containers, err := p.snapshot(ctx, pod)
	if cri.IsUnavailable(err) {
		made.Plan.RequeueWithin(unavailablePeriod)
		return made, nil
	}
	if err != nil {
		return pass.Pass{}, err
	}
	todo := plan.Compute(snapshot)
	made.Plan = todo.Plan
	made.Do = func(ctx context.Context, execute func() progress.Result) progress.Result {
		done := execute()
		p.sources.Metrics.MetaPatches.Add(float64(done.Done(action.PatchStatus)))
		if !todo.Reported(&done) {
			p.memory.remember(pod, remembered{outdated: snapshot.Outdated, unread: todo.Unread})
			return done
		}
		p.memory.remember(pod, remembered{outdated: todo.Outdated, unread: todo.Unread})
		for _, id := range todo.Stop {
			p.stop(ctx, pod, containers, id)
		}
		return done
	}
	return made, nil
}

// snapshot reads the pod's containers, and the environments that are not known yet.
func (p *Passes) snapshot(ctx context.Context, pod *corev1.Pod) (plan.Snapshot, []cri.Container, error) {
	known := p.memory.of(pod)
	s := plan.Snapshot{
		Pod:             pod,
		EnvFromMetadata: p.sources.EnvFromMetadata,
		Outdated:        known.outdated,
		Unread:          known.unread,
		Now:             p.sources.Clock.Now(),
	}
	s.Refusals = p.sources.Refusals(pod, s.Now)
	containers, err := p.sources.Runtimes.Containers(ctx, pod.Namespace, pod.Name, idsOf(pod))
	if err != nil {
		return s, nil, fmt.Errorf("list containers of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	containers = slices.DeleteFunc(containers, func(c cri.Container) bool { return c.Pod.UID != pod.UID })
	for i := range containers {
		c := &containers[i]
		s.Containers = append(s.Containers, plan.Container{
			Name:         c.Name,
			ID:           c.ID,
			RestartCount: c.RestartCount,
			Hash:         c.Hash,
			Running:      c.State == cri.StateRunning,
		})
	}
	for _, id := range plan.NeedEnv(s) {
		i := slices.IndexFunc(s.Containers, func(c plan.Container) bool { return c.ID == id })
		s.Containers[i].Env = p.env(ctx, id)
	}
	return s, containers, nil
}

// idsOf returns the IDs of the pod's containers in its status.
func idsOf(pod *corev1.Pod) []string {
	var ids []string
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		ids = append(ids, s.ContainerID)
	}
	return ids
}

// env reads an environment from the runtime, or from the container if the runtime does not report it. It returns nil
// if neither does.
func (p *Passes) env(ctx context.Context, id string) map[string]string {
	status, err := p.sources.Runtimes.Details(ctx, id)
	if err == nil && status.Env != nil {
		return status.Env
	}
	env, err := p.sources.Runtimes.Env(ctx, id)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Failed to read the environment of a container", "container", id, "reason", err.Error())
		return nil
	}
	return env
}

// stop begins the restart of a container. The pod's spec is not needed: the annotations of the
// kubelet on the container have everything.
func (p *Passes) stop(ctx context.Context, pod *corev1.Pod, containers []cri.Container, id string) {
	i := slices.IndexFunc(containers, func(c cri.Container) bool { return c.ID == id })
	c := containers[i]
	request := containerstop.Request{
		Container: c,
		PreStop:   c.PreStop,
		Ports:     c.Ports,
		Grace:     graceOf(&c),
		Reason:    stopReason,
		Message:   fmt.Sprintf("Stopping container %s: its in-place update restarts it", c.Name),
	}
	order := stops.Order{
		Pod:     client.ObjectKeyFromObject(pod),
		For:     planmemory.KeyOf(pod),
		Request: request,
	}
	log := ctrl.LoggerFrom(ctx).WithValues("container", id)
	ended := func(_ context.Context, err error) {
		p.stops.DropEnded(order.Pod) // the plan decides when the container is stopped again
		switch {
		case errors.Is(err, containerstop.ErrAborted):
			log.Info("The restart is cancelled: the pod has changed")
		case err != nil:
			log.Error(err, "Failed to stop a container")
		}
	}
	p.stops.Hook(ctx, order, func(ctx context.Context, err error) {
		if err == nil && !p.wanted(ctx, pod, id) {
			p.stops.Abort(order.Pod, func(other string) bool { return other == id })
		}
		if err == nil && p.stops.Signal(ctx, order, ended) {
			return
		}
		ended(ctx, cmp.Or(err, containerstop.ErrAborted))
	})
}

// wanted reports whether the pod still wants a restart, as the server has it: the hook may have taken long, and the cache
// may lag. While the server does not answer, the cache decides.
func (p *Passes) wanted(ctx context.Context, pod *corev1.Pod, id string) bool {
	key := client.ObjectKeyFromObject(pod)
	now := &corev1.Pod{}
	err := p.sources.Live.Get(ctx, key, now)
	if err != nil && !apierrors.IsNotFound(err) {
		now, err = p.sources.Pod(ctx, key)
	}
	return err == nil && now.UID == pod.UID && plan.Wants(now, id)
}
