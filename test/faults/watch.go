package faults

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watcher records the states of a namespace and the nodes. Where the API server ends a watch and cannot resume it, it lists the
// objects again: the states in between are not seen, and Relists counts it.
type Watcher struct {
	mu      sync.Mutex
	history History
	relists int
	wait    sync.WaitGroup
}

// watched is a kind of object that a Watcher follows.
type watched struct {
	list  func() client.ObjectList
	clear func(*Moment)
	put   func(*Moment, runtime.Object)
	drop  func(*Moment, runtime.Object)
}

func kinds() []watched {
	return []watched{
		{
			func() client.ObjectList { return &corev1.PodList{} },
			func(m *Moment) { m.Pods = map[types.UID]Pod{} },
			func(m *Moment, o runtime.Object) { p := podOf(o.(*corev1.Pod)); m.Pods[p.UID] = p },
			func(m *Moment, o runtime.Object) { delete(m.Pods, o.(*corev1.Pod).UID) },
		},
		{
			func() client.ObjectList { return &batchv1.JobList{} },
			func(m *Moment) { m.Jobs = map[types.UID]Job{} },
			func(m *Moment, o runtime.Object) { j := jobOf(o.(*batchv1.Job)); m.Jobs[j.UID] = j },
			func(m *Moment, o runtime.Object) { delete(m.Jobs, o.(*batchv1.Job).UID) },
		},
		{
			func() client.ObjectList { return &corev1.PersistentVolumeClaimList{} },
			func(m *Moment) { m.Claims = map[string]types.UID{} },
			func(m *Moment, o runtime.Object) {
				claim := o.(*corev1.PersistentVolumeClaim)
				m.Claims[claim.Name] = claim.UID
				if claim.DeletionTimestamp != nil {
					delete(m.Claims, claim.Name)
				}
			},
			func(m *Moment, o runtime.Object) { delete(m.Claims, o.(*corev1.PersistentVolumeClaim).Name) },
		},
		{
			func() client.ObjectList { return &corev1.NodeList{} },
			func(m *Moment) { m.Closed = map[string]bool{} },
			func(m *Moment, o runtime.Object) {
				node := o.(*corev1.Node)
				delete(m.Closed, node.Name)
				if isClosed(node) {
					m.Closed[node.Name] = true
				}
			},
			func(m *Moment, o runtime.Object) { delete(m.Closed, o.(*corev1.Node).Name) },
		},
	}
}

// Watch begins to record the namespace and the nodes, until the context ends.
func Watch(ctx context.Context, c client.WithWatch, namespace string) (*Watcher, error) {
	w := &Watcher{history: History{emptyMoment()}}
	for _, k := range kinds() {
		version, err := w.read(ctx, c, namespace, k)
		if err != nil {
			return nil, err
		}
		w.wait.Go(func() { w.follow(ctx, c, namespace, k, version) })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = w.history[len(w.history)-1:]
	return w, nil
}

// read lists the objects of a kind and returns the version of the list.
func (w *Watcher) read(ctx context.Context, c client.WithWatch, namespace string, k watched) (string, error) {
	list := k.list()
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return "", fmt.Errorf("list what to watch: %w", err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return "", fmt.Errorf("read the list: %w", err)
	}
	w.record(func(m *Moment) {
		k.clear(m)
		for _, o := range items {
			k.put(m, o)
		}
	})
	return list.GetResourceVersion(), nil
}

// follow watches from the version on. A watch that ends is resumed, and if it cannot be the objects are listed again.
func (w *Watcher) follow(ctx context.Context, c client.WithWatch, namespace string, k watched, version string) {
	for ctx.Err() == nil {
		if version == "" {
			var err error
			if version, err = w.read(ctx, c, namespace, k); err == nil {
				w.mu.Lock()
				w.relists++
				w.mu.Unlock()
			}
		}
		if version != "" {
			version = w.consume(ctx, c, namespace, k, version)
		}
		linger(ctx, pause)
	}
}

// consume records the events of one watch. It returns the version to resume from, empty if that cannot be.
func (w *Watcher) consume(ctx context.Context, c client.WithWatch, namespace string, k watched, version string) string {
	raw := &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}
	watcher, err := c.Watch(ctx, k.list(), &client.ListOptions{Namespace: namespace, Raw: raw})
	if err != nil {
		return version
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return ""
		}
		o, err := meta.Accessor(event.Object)
		if err != nil {
			return ""
		}
		version = o.GetResourceVersion()
		switch event.Type {
		case watch.Added, watch.Modified:
			w.record(func(m *Moment) { k.put(m, event.Object) })
		case watch.Deleted:
			w.record(func(m *Moment) { k.drop(m, event.Object) })
		default: // a bookmark has the version only
		}
	}
	return version
}

func (w *Watcher) record(change func(*Moment)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.history[len(w.history)-1].next(time.Now())
	change(&m)
	w.history = append(w.history, m)
}

// Now returns the last moment.
func (w *Watcher) Now() Moment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.history[len(w.history)-1]
}

// closed returns the nodes that were closed at some moment.
func (w *Watcher) closed() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]bool{}
	for _, m := range w.history {
		maps.Copy(all, m.Closed)
	}
	return all
}

// End waits for the end of the watches, whose context has ended, and returns all that they recorded.
func (w *Watcher) End() (history History, relists int) {
	w.wait.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.history, w.relists
}
