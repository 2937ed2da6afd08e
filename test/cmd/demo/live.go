package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// live is a view of the demo's pods that sees every change since it was begun.
type live struct {
	ink     ink
	started time.Time // of the demo
	pods    map[types.UID]*corev1.Pod
	watcher watch.Interface
	shown   string // the line shown last
}

// moment is what a view tells of the pods between two changes.
type moment struct {
	line string // what is shown, unless it was shown last
	done bool   // ends the view
	err  error  // what must never be, which ends the view, too
}

// watch begins a view of pods "app=web". The caller stops its watcher.
func (d *demo) watch(ctx context.Context) (*live, error) {
	pods := d.api.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return nil, fmt.Errorf("list the pods: %w", err)
	}
	watcher, err := pods.Watch(ctx, metav1.ListOptions{LabelSelector: "app=web", ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, fmt.Errorf("watch the pods: %w", err)
	}
	l := &live{
		ink:     d.ink,
		started: d.started,
		pods:    map[types.UID]*corev1.Pod{},
		watcher: watcher,
	}
	for i := range list.Items {
		l.pods[list.Items[i].UID] = &list.Items[i]
	}
	return l, nil
}

// show shows the pods, ordered by name, in the words of tell at each change, until tell is done.
func (l *live) show(ctx context.Context, tell func([]*corev1.Pod) moment) error {
	for {
		now := tell(slices.SortedFunc(maps.Values(l.pods), func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) }))
		if now.line != l.shown {
			l.shown = now.line
			fmt.Printf("%s  %s\n", l.ink.dim(fmt.Sprintf("%5.1f s", time.Since(l.started).Seconds())), now.line)
		}
		if now.err != nil || now.done {
			return now.err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the pods did not come to what was waited for: %w", ctx.Err())
		case event, open := <-l.watcher.ResultChan():
			if !open {
				return errors.New("the watch of the pods has ended")
			}
			if err := l.see(event); err != nil {
				return err
			}
		}
	}
}

// see takes over a change.
func (l *live) see(event watch.Event) error {
	o, ok := event.Object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("watch the pods: %w", apierrors.FromObject(event.Object))
	}
	if event.Type == watch.Deleted {
		delete(l.pods, o.UID)
	} else {
		l.pods[o.UID] = o
	}
	return nil
}

// bar shows how many there are, and after them how many are missing.
func (i ink) bar(have, missing int) string {
	return i.green(strings.Repeat("●", have)) + i.yellow(strings.Repeat("○", max(missing, 0)))
}

// lines hands over what is written to it, line by line. It must have one writer.
type lines struct {
	each func(string)
	rest []byte
}

// Write takes over a part of the text, which need not be whole lines.
func (l *lines) Write(text []byte) (int, error) {
	l.rest = append(l.rest, text...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		l.rest = rest
		l.each(string(line))
	}
}
