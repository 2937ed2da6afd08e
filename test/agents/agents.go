package agents

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

const (
	// parallel is how many objects are answered at a time.
	parallel = 32
	// again is the wait before a watch that the server refuses is asked for again.
	again = time.Second
)

// Answer writes the next state of an object. If the write is refused, it waits for the next change of the object.
type Answer func(ctx context.Context, c client.Client, o client.Object)

// Play answers each change of the objects of a list until stop is called or ctx ends. It watches again when the server ends
// the watch.
func Play(ctx context.Context, c client.WithWatch, list client.ObjectList, answer Answer) (stop func(), err error) {
	watching, end := context.WithCancel(ctx)
	events, err := c.Watch(watching, list)
	if err != nil {
		end()
		return nil, fmt.Errorf("watch the objects of the agents: %w", err)
	}
	objects := make(chan client.Object)
	var agents sync.WaitGroup
	agents.Go(func() {
		defer close(objects)
		for events != nil {
			for e := range events.ResultChan() {
				if o, ok := e.Object.(client.Object); ok {
					objects <- o
				}
			}
			for events = nil; events == nil && watching.Err() == nil; {
				if events, err = c.Watch(watching, list); err != nil {
					events = nil
					pause(watching, again)
				}
			}
		}
	})
	for range parallel {
		agents.Go(func() {
			for o := range objects {
				answer(ctx, c, o)
			}
		})
	}
	return func() {
		end()
		agents.Wait()
	}, nil
}

func pause(ctx context.Context, long time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(long):
	}
}

// Pull answers a NodeImage: the node pulls each tag that it is asked for, and then has it.
func Pull(ctx context.Context, c client.Client, o client.Object) {
	image, ok := o.(*daemon.NodeImage)
	if !ok || image.DeletionTimestamp != nil {
		return
	}
	before := client.MergeFrom(image.DeepCopy())
	told := image.Status.ImageStatuses
	image.Status.ImageStatuses = nil
	for _, name := range slices.Sorted(maps.Keys(image.Spec.Images)) {
		if image.Status.ImageStatuses == nil {
			image.Status.ImageStatuses = map[string]daemon.ImageStatus{}
		}
		var next daemon.ImageStatus
		for _, tag := range image.Spec.Images[name].Tags {
			next.Tags = append(next.Tags, pulled(tag, told[name].Tags))
		}
		image.Status.ImageStatuses[name] = next
	}
	if !reflect.DeepEqual(told, image.Status.ImageStatuses) {
		_ = c.Status().Patch(ctx, image, before)
	}
}

// pulled returns the state of a tag that follows on what was told before.
func pulled(tag daemon.ImageTagSpec, told []daemon.ImageTagStatus) daemon.ImageTagStatus {
	next := daemon.ImageTagStatus{
		Tag:     tag.Tag,
		Version: tag.Version,
		Phase:   daemon.ImagePulling,
	}
	if slices.ContainsFunc(told, func(t daemon.ImageTagStatus) bool { return t.Tag == tag.Tag && t.Version == tag.Version }) {
		next.Phase = daemon.ImageSucceeded
	}
	return next
}

// Recreate answers a ContainerRecreateRequest: the node works on it, and its containers have been recreated once the pod has
// been not ready for as long as the request wants.
func Recreate(ctx context.Context, c client.Client, o client.Object) {
	r, ok := o.(*daemon.ContainerRecreateRequest)
	if !ok || r.DeletionTimestamp != nil {
		return
	}
	before := client.MergeFrom(r.DeepCopy())
	now := metav1.Now()
	switch {
	case r.Status.Phase == "":
		r.Status.Phase = daemon.RecreateRecreating
		r.Status.LastHeartbeatTime = &now
	case r.Status.Phase == daemon.RecreateCompleted, waits(r):
		return
	default:
		r.Status.Phase = daemon.RecreateCompleted
		r.Status.CompletionTime = &now
		for _, container := range r.Spec.Containers {
			r.Status.ContainerRecreateStates = append(r.Status.ContainerRecreateStates, daemon.ContainerRecreateState{
				Name:     container.Name,
				Phase:    daemon.RecreateSucceeded,
				IsKilled: true,
			})
		}
	}
	_ = c.Status().Patch(ctx, r, before)
}

// waits reports whether the pod of a request has to be not ready before.
func waits(r *daemon.ContainerRecreateRequest) bool {
	return r.Spec.Strategy != nil && r.Spec.Strategy.UnreadyGracePeriodSeconds != nil &&
		!meta.IsStatusConditionTrue(r.Status.Conditions, daemon.PreRecreateGrace)
}
