package containerrestart

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	planmemory "github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
)

const killReason = "ContainerRecreateRequest"

// completedRequests returns the requests that are no longer active and of which a stop has not reached the runtime yet, as
// read from the server. Deleted ones are left out.
func (p *Passes) completedRequests(
	ctx context.Context, key types.NamespacedName, active []*v1beta1.ContainerRecreateRequest, under map[string]stops.Stop,
) ([]*v1beta1.ContainerRecreateRequest, error) {
	var over []*v1beta1.ContainerRecreateRequest
	listed := map[types.UID]bool{}
	for _, request := range active {
		listed[request.UID] = true
	}
	for _, stop := range under {
		if !stop.Unsent() || listed[stop.For.UID] {
			continue
		}
		listed[stop.For.UID] = true
		request := p.memory.completed(key, stop.For.UID)
		if request == nil {
			request = &v1beta1.ContainerRecreateRequest{}
			err := p.sources.Live.Get(ctx, stop.For.NamespacedName, request)
			if apierrors.IsNotFound(err) || err == nil && request.UID != stop.For.UID {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("get request %s: %w", stop.For.NamespacedName, err)
			}
			p.memory.setCompleted(key, request)
		}
		over = append(over, request)
	}
	return over, nil
}

// podGone reports whether the pod does not exist on the server or is terminating.
func (p *Passes) podGone(ctx context.Context, key types.NamespacedName, name string) (bool, error) {
	pod := &corev1.Pod{}
	err := p.sources.Live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, pod)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("get pod %s/%s: %w", key.Namespace, name, err)
	}
	return string(pod.UID) != key.Name || pod.DeletionTimestamp != nil, nil
}

// hook runs the preStop hook of a container. A later pass stops the container.
func (p *Passes) hook(ctx context.Context, key types.NamespacedName, kill *node.Kill, containers []cri.Container) {
	if order, found := orderOf(key, kill, containers); found {
		p.stops.Hook(ctx, order, p.waken(key))
	}
}

// kill asks the runtime to stop a container. A later pass reads how that ended.
func (p *Passes) kill(ctx context.Context, key types.NamespacedName, kill *node.Kill, containers []cri.Container) {
	order, found := orderOf(key, kill, containers)
	if found && !p.stops.Signal(ctx, order, p.waken(key)) {
		p.stops.WithoutHook(ctx, order, p.waken(key)) // it has none, or an earlier agent has run it
	}
}

// waken returns what requests the next pass when a hook or a stop has ended.
func (p *Passes) waken(key types.NamespacedName) func(context.Context, error) {
	return func(ctx context.Context, _ error) { p.wake(ctx, key) }
}

// orderOf returns the order to stop a container; false if the runtime does not have it.
func orderOf(key types.NamespacedName, kill *node.Kill, containers []cri.Container) (stops.Order, bool) {
	i := slices.IndexFunc(containers, func(c cri.Container) bool { return c.ID == kill.ContainerID })
	if i < 0 {
		return stops.Order{}, false
	}
	return stops.Order{
		Pod: key,
		For: planmemory.KeyOf(kill.Request),
		Request: containerstop.Request{
			Container: containers[i],
			PreStop:   hookOf(kill.PreStop),
			Ports:     kill.Ports,
			Grace:     kill.Grace,
			Reason:    killReason,
			Message:   kill.Message,
		},
	}, true
}

func hookOf(hook *v1beta1.PreStopHandler) *corev1.LifecycleHandler {
	if hook == nil {
		return nil
	}
	return &corev1.LifecycleHandler{
		Exec:      hook.Exec,
		HTTPGet:   hook.HTTPGet,
		TCPSocket: hook.TCPSocket,
		Sleep:     hook.Sleep,
	}
}
