package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic/dynamicinformer"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// Watched is a workload, and its pods where they are watched, as of the last change that was seen.
type Watched struct {
	set, pods cache.SharedIndexInformer
	kind      Kind
	key       string
	changed   chan struct{}
	failed    chan error
}

// Watch follows a workload until ctx ends.
func (c *Client) Watch(ctx context.Context, s *Set, withPods bool) (*Watched, error) {
	only := fields.OneTermEqualSelector("metadata.name", s.Name).String()
	w := &Watched{
		kind:    s.Kind,
		key:     s.Namespace + "/" + s.Name,
		changed: make(chan struct{}, 1),
		failed:  make(chan error, 1),
		set: dynamicinformer.NewFilteredDynamicInformer(c.Dynamic, s.Kind.In(s.Version), s.Namespace, 0, cache.Indexers{},
			func(o *metav1.ListOptions) { o.FieldSelector = only }).Informer(),
	}
	followed := []cache.SharedIndexInformer{w.set}
	if withPods {
		w.pods = coreinformers.NewFilteredPodInformer(c.Core, s.Namespace, 0, cache.Indexers{},
			func(o *metav1.ListOptions) { o.LabelSelector = s.Selector.String() })
		followed = append(followed, w.pods)
	}
	for _, informer := range followed {
		if err := w.follow(ctx, informer); err != nil {
			return nil, fmt.Errorf("watch %s: %w", s, err)
		}
	}
	return w, nil
}

func (w *Watched) follow(ctx context.Context, informer cache.SharedIndexInformer) error {
	err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		select {
		case w.failed <- err:
		default:
		}
	})
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.tell() },
		UpdateFunc: func(any, any) { w.tell() },
		DeleteFunc: func(any) { w.tell() },
	})
	if err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	// An informer tries again without end; here the first error ends the wait for the first list.
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-w.failed:
		return err
	case <-informer.HasSyncedChecker().Done():
	}
	w.tell()
	return nil
}

func (w *Watched) tell() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Changed has a value when something changed since it was read last.
func (w *Watched) Changed() <-chan struct{} { return w.changed }

// Set returns the workload, or nil when it is gone.
func (w *Watched) Set() (*Set, error) {
	object, exists, err := w.set.GetStore().GetByKey(w.key)
	if err != nil || !exists {
		return nil, err
	}
	stored, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("watch %s: unexpected %T", w.key, object)
	}
	return Read(w.kind, stored)
}

// Pods returns the pods of the workload.
func (w *Watched) Pods(s *Set) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, object := range w.pods.GetStore().List() {
		if pod, ok := object.(*corev1.Pod); ok && s.Owns(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}
