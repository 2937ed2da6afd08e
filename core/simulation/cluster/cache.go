package cluster

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

// Cached returns what an operator's cache shows of a pod: a copy, with the restart policy that every server sets,
// trimmed by fastclient.TrimPod.
func Cached(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	if _, err := fastclient.TrimPod(pod); err != nil {
		panic(fmt.Sprintf("a pod that cannot be trimmed: %v", err))
	}
	return pod
}

// Snapshot returns Cached for all pods of a list.
func Snapshot(pods []*corev1.Pod) []*corev1.Pod {
	var all []*corev1.Pod
	for _, pod := range pods {
		all = append(all, Cached(pod))
	}
	return all
}

// CacheView returns View with what an operator's cache shows of each object: planners read such a view.
func (w *World) CacheView(lag func(kind string) int) *View {
	v := w.View(lag)
	v.cached = true
	return v
}

// cached returns what the operator's cache shows of an object, the same copy for each look.
func (w *World) cached(o action.Object) action.Object {
	pod, ok := o.(*corev1.Pod)
	if !ok || pod == nil {
		return o
	}
	shown := w.shown[pod]
	if shown == nil {
		shown = Cached(pod)
		w.shown[pod] = shown
		w.WatchForChanges(shown)
	}
	return shown
}

// Mutated returns an object that somebody changed who may only read it, with DetectMutation; nil if there is none.
func (w *World) Mutated() action.Object {
	for i, object := range w.originals {
		if !Same(object, w.copies[i]) {
			return object
		}
	}
	return nil
}

// WatchForChanges keeps a copy of an object, with DetectMutation.
func (w *World) WatchForChanges(o action.Object) {
	if w.Options.DetectMutation {
		w.originals = append(w.originals, o)
		w.copies = append(w.copies, o.DeepCopyObject().(action.Object))
	}
}
