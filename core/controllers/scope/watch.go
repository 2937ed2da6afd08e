package scope

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// retryAfter is the pause after a namespace could not be listed.
const retryAfter = time.Second

// lister lists and watches the pods of the scope.
type lister struct {
	scope *Scope
	from  toolscache.ListerWatcher

	mu      sync.Mutex
	version string // that the watch has reached
}

// IsWatchListSemanticsUnSupported marks a client that cannot list in a watch.
func (l *lister) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(l.from)
}

// List is part of toolscache.ListerWatcher.
func (l *lister) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o) //nolint:forbidigo // nobody calls it, but it is part of the interface
}

// Watch is part of toolscache.ListerWatcher.
func (l *lister) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o) //nolint:forbidigo // nobody calls it, but it is part of the interface
}

// ListWithContext is part of toolscache.ListerWatcherWithContext.
func (l *lister) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.Continue == "" {
		if err := l.begin(ctx); err != nil {
			return nil, err
		}
	}
	pods, err := list(ctx, l.from, o, func(pod *corev1.Pod) bool { return l.scope.passes(pod, false) })
	if err != nil {
		return nil, err
	}
	if pods.Continue == "" {
		l.reach(pods.ResourceVersion)
		l.scope.listed()
	}
	return pods, nil
}

// list lists pods, and returns a copy with those alone that pass.
func list(ctx context.Context, from toolscache.Lister, o metav1.ListOptions, passes func(*corev1.Pod) bool) (*corev1.PodList, error) {
	all, err := toolscache.ToListerWithContext(from).ListWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	pods, ok := all.(*corev1.PodList)
	if !ok {
		return nil, fmt.Errorf("list pods: got %T", all)
	}
	pods.Items = slices.Clone(slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !passes(&pod) }))
	return pods, nil
}

// begin makes the next list or watch cover the namespaces that matter now.
func (l *lister) begin(ctx context.Context) error {
	namespaces, err := l.scope.source.Namespaces(ctx, l.scope.Add)
	if err != nil {
		return fmt.Errorf("find the namespaces whose pods are cached: %w", err)
	}
	l.reach("")
	l.scope.reopen(namespaces)
	return nil
}

func (l *lister) reach(version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version = version
}

// reached returns the version up to which all events have been passed on, empty before the end of the first ones.
func (l *lister) reached() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version
}

// WatchWithContext is part of toolscache.ListerWatcherWithContext.
func (l *lister) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		if err := l.begin(ctx); err != nil {
			return nil, err
		}
	} else if version := l.reached(); version != "" {
		o.ResourceVersion = version // the cache may have seen pods of a namespace that has just been opened last
	}
	inner, err := toolscache.ToWatcherWithContext(l.from).WatchWithContext(ctx, o)
	if err != nil {
		return nil, err
	}
	out := make(chan watch.Event)
	p := &pump{
		lister: l,
		inner:  inner,
		out:    out,
		outer:  watch.NewProxyWatcher(out),
	}
	go p.run(ctx)
	return p.outer, nil
}

// pump passes the events of one watch on.
type pump struct {
	*lister
	inner watch.Interface
	out   chan<- watch.Event
	outer *watch.ProxyWatcher
}

func (p *pump) run(ctx context.Context) {
	defer close(p.out)
	defer p.inner.Stop()
	var pause <-chan time.Time // after a failure
	for !p.outer.Stopping() {
		if pause == nil {
			var goOn bool
			if pause, goOn = p.openAll(ctx); !goOn {
				return
			}
		}
		select {
		case <-p.outer.StopChan():
			return
		case <-pause:
			pause = nil
		case <-p.scope.wake:
		case e, more := <-p.inner.ResultChan():
			if !more || !p.pass(e) {
				return
			}
		}
	}
}

// pass passes an event on, and returns false when the receiver has stopped. Of events in other namespaces it passes on
// the version alone: the cache is as new as the server's events are.
func (p *pump) pass(e watch.Event) bool {
	pod, ok := e.Object.(*corev1.Pod)
	ends, begun := false, p.reached() != ""
	switch {
	case !ok: // an error
		return p.send(e)
	case e.Type == watch.Bookmark:
		ends = pod.Annotations[metav1.InitialEventsAnnotationKey] == "true"
		p.scope.prune()
	case p.scope.passes(pod, e.Type == watch.Deleted):
	case !begun: // pods as they were at the beginning come before the first version
		return true
	default:
		e = bookmark(pod.ResourceVersion)
	}
	version := pod.ResourceVersion // the receiver drops fields of the object that it does not need
	if !p.send(e) {
		return false
	}
	if ends {
		p.scope.listed()
	}
	if ends || begun {
		p.reach(version)
	}
	return true
}

func (p *pump) send(e watch.Event) bool {
	select {
	case p.out <- e:
		return true
	case <-p.outer.StopChan():
		return false
	}
}

func bookmark(version string) watch.Event {
	return watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}}
}

// openAll hands over the pods of the namespaces that were added. It returns a channel that signals when to try again, nil
// if that is not needed, and false when the watch has ended.
func (p *pump) openAll(ctx context.Context) (again <-chan time.Time, goOn bool) {
	version := p.reached()
	for version != "" {
		namespace, found := p.scope.next()
		if !found {
			break
		}
		list, err := p.scope.source.List(ctx, namespace, version)
		switch {
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			status := apierrors.NewResourceExpired("the pods of a namespace were listed at another version than the watch").Status()
			p.send(watch.Event{Type: watch.Error, Object: &status})
			return nil, false
		case ctx.Err() != nil:
			return nil, false
		case err != nil:
			log.FromContext(ctx).Error(err, "Failed to list the pods of a namespace, trying again", "namespace", namespace)
			return p.scope.clock.After(retryAfter), true
		}
		p.scope.opened(namespace, list.Items)
		for i := range list.Items {
			one := list.Items[i] // apart from the others, so that each can go
			if !p.send(watch.Event{Type: watch.Added, Object: &one}) {
				p.scope.close(namespace)
				return nil, false
			}
		}
		if !p.send(bookmark(version)) {
			return nil, false
		}
	}
	return nil, true
}
