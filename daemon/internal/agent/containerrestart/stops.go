package containerrestart

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
)

const killReason = "ContainerRecreateRequest"

// completedRequests returns the requests that are no longer active while a stop of theirs is under way, as read from
// the server. Deleted ones are left out.
func (r *reconciler) completedRequests(ctx context.Context, key types.NamespacedName, active []*v1beta1.ContainerRecreateRequest) ([]*v1beta1.ContainerRecreateRequest, error) {
	var over []*v1beta1.ContainerRecreateRequest
	for uid, kept := range r.memory.stopping(key) {
		if slices.ContainsFunc(active, func(request *v1beta1.ContainerRecreateRequest) bool { return request.UID == uid }) {
			continue
		}
		if kept.completed == nil {
			request := &v1beta1.ContainerRecreateRequest{}
			err := r.Live.Get(ctx, kept.name, request)
			if apierrors.IsNotFound(err) || err == nil && request.UID != uid {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("get request %s: %w", kept.name, err)
			}
			r.memory.setCompleted(key, request)
			kept.completed = request
		}
		over = append(over, kept.completed)
	}
	return over, nil
}

// podGone reports whether the pod does not exist on the server or is terminating.
func (r *reconciler) podGone(ctx context.Context, key types.NamespacedName, name string) (bool, error) {
	pod := &corev1.Pod{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, pod)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("get pod %s/%s: %w", key.Namespace, name, err)
	}
	return string(pod.UID) != key.Name || pod.DeletionTimestamp != nil, nil
}

// hook runs the preStop hook of a container. A later pass stops the container.
func (r *reconciler) hook(ctx context.Context, key types.NamespacedName, kill *node.Kill, containers []cri.Container) {
	stop, found := requestOf(kill, containers)
	if !found {
		return
	}
	r.memory.begin(ctx, key, kill, node.InHook, func(ctx context.Context) {
		took, err := r.config.Stopper.Hook(ctx, stop)
		r.memory.hookEnded(key, kill.ContainerID, took, err)
		r.wake(ctx, key)
	})
}

// kill asks the runtime to stop a container. A later pass reads how that ended.
func (r *reconciler) kill(ctx context.Context, key types.NamespacedName, kill *node.Kill, containers []cri.Container) {
	stop, found := requestOf(kill, containers)
	if !found {
		return
	}
	took, hooked := r.memory.hookTook(key, kill)
	r.memory.begin(ctx, key, kill, node.Told, func(ctx context.Context) {
		var err error
		if hooked {
			err = r.config.Stopper.Signal(ctx, stop, took)
		} else {
			stop.PreStop = nil // it has none, or an earlier agent has run it
			err = r.config.Stopper.Stop(ctx, stop)
		}
		r.memory.stopEnded(key, kill.ContainerID, err, r.Clock.Now())
		r.wake(ctx, key)
	})
}

// requestOf returns the request to stop a container; false if the runtime does not have it.
func requestOf(kill *node.Kill, containers []cri.Container) (containerstop.Request, bool) {
	i := slices.IndexFunc(containers, func(c cri.Container) bool { return c.ID == kill.ContainerID })
	if i < 0 {
		return containerstop.Request{}, false
	}
	return containerstop.Request{
		Container: containers[i], PreStop: hookOf(kill.PreStop), Ports: kill.Ports, Grace: kill.Grace,
		Reason: killReason, Message: kill.Message,
	}, true
}

func hookOf(hook *v1beta1.PreStopHandler) *corev1.LifecycleHandler {
	if hook == nil {
		return nil
	}
	return &corev1.LifecycleHandler{Exec: hook.Exec, HTTPGet: hook.HTTPGet, TCPSocket: hook.TCPSocket, Sleep: hook.Sleep}
}
