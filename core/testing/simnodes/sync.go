package simnodes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/tools/cache"
)

// conflictRetry is the wait after a write that met another pod of the same name, should its event not
// wake the pod by itself.
const conflictRetry = 20 * time.Millisecond

// podFilter restricts the watch to pods with a node, unless pods without are to be bound.
func (n *Nodes) podFilter(o *metav1.ListOptions) {
	if !n.options.Bind {
		o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	}
}

// dropManagedFields saves memory; a status update without them leaves those of the server alone.
func dropManagedFields(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return object, nil
}

func (n *Nodes) podEvents() cache.ResourceEventHandler {
	wake := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok && n.concerns(pod) {
			n.queue.Add(keyOf(pod))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    wake,
		UpdateFunc: func(_, object any) { wake(object) },
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			wake(object)
		},
	}
}

// concerns reports whether the pod is on one of the nodes or could be bound to one.
func (n *Nodes) concerns(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" {
		return n.options.Bind
	}
	return n.byName[pod.Spec.NodeName] != nil // never changes after Start
}

func (n *Nodes) work(ctx context.Context) bool {
	key, stop := n.queue.Get()
	if stop {
		return false
	}
	defer n.queue.Done(key)
	switch again, err := n.sync(ctx, key); {
	case ctx.Err() != nil:
	case apierrors.IsConflict(err):
		n.queue.AddAfter(key, conflictRetry)
	case err != nil && !apierrors.IsNotFound(err):
		n.options.Log.Error(err, "Failed to act on pod", "pod", key)
		n.queue.AddRateLimited(key)
	default:
		n.queue.Forget(key)
		if !again.IsZero() {
			n.queue.AddAfter(key, again.Sub(n.options.Clock.Now()))
		}
	}
	return true
}

// sync advances one pod by at most one write and returns when to come back.
func (n *Nodes) sync(ctx context.Context, key types.NamespacedName) (time.Time, error) {
	pod := n.cached(key)
	switch {
	case pod == nil:
		n.forget(key)
		return time.Time{}, nil
	case pod.Spec.NodeName == "":
		return n.bind(ctx, key, pod)
	case n.byName[pod.Spec.NodeName] == nil: // others have bound it to a node of theirs
		n.forget(key)
		return time.Time{}, nil
	}
	next := n.decide(key, pod)
	switch {
	case next.remove:
		return time.Time{}, n.remove(ctx, next.pod)
	case next.status == nil || equality.Semantic.DeepEqual(*next.status, next.pod.Status):
		return next.again, nil
	}
	if err := n.report(ctx, key, next.pod, next.status); err != nil {
		return time.Time{}, fmt.Errorf("report status of pod %s: %w", key, err)
	}
	return next.again, nil
}

// decision is what a node is going to do about a pod.
type decision struct {
	pod    *corev1.Pod       // the newest version known
	status *corev1.PodStatus // what to report; nil: nothing
	remove bool              // the pod has ended and its object is to go
	again  time.Time
}

// decide returns what comes next for a pod on one of the nodes.
func (n *Nodes) decide(key types.NamespacedName, pod *corev1.Pod) decision {
	n.mu.Lock()
	defer n.mu.Unlock()
	home := n.byName[pod.Spec.NodeName]
	now := n.options.Clock.Now()
	run := n.runs[key]
	if run == nil || run.uid != pod.UID {
		n.nextIP++
		run = newPodRun(pod, podIP(n.nextIP), now)
		n.runs[key] = run
		n.place(key, home)
	}
	if run.written != nil && newer(run.written, pod) {
		pod = run.written
	} else {
		run.written = nil // the cache has caught up
	}
	if home.paused || n.silent(pod) {
		return decision{pod: pod}
	}
	if pod.DeletionTimestamp != nil {
		return n.decideDeleted(run, pod, now, home.ip)
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return decision{pod: pod} // a pod that has ended stays so, also if somebody else said it
	}
	again := run.step(pod, now, &n.options, n.image)
	return decision{
		pod:    pod,
		status: run.status(pod, now, home.ip, n.image),
		again:  again,
	}
}

// decideDeleted ends a deleted pod. One that has a finalizer is reported as ended first; with a grace period of 0 its
// removal has been asked for already.
func (n *Nodes) decideDeleted(run *podRun, pod *corev1.Pod, now time.Time, hostIP string) decision {
	if run.deletedAt.IsZero() {
		run.deletedAt = now
	}
	delay := n.options.TerminationDelay
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		delay = min(delay, time.Duration(*grace)*time.Second)
	}
	if due := run.deletedAt.Add(delay); now.Before(due) {
		return decision{pod: pod, again: due}
	}
	if len(pod.Finalizers) > 0 {
		run.end(now)
		status := run.status(pod, now, hostIP, n.image)
		if !equality.Semantic.DeepEqual(*status, pod.Status) {
			return decision{pod: pod, status: status, again: now}
		}
	}
	granted := pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
	return decision{pod: pod, remove: !granted}
}

// report writes the changes of the status, as a kubelet does: what others have written in between is kept, and only
// another pod of the same name is a conflict.
func (n *Nodes) report(ctx context.Context, key types.NamespacedName, pod *corev1.Pod, status *corev1.PodStatus) error {
	patch, err := statusPatch(pod, status)
	if err != nil {
		return err
	}
	written, err := n.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	n.counts.reports.Add(1)
	if !isReady(&pod.Status) && isReady(status) {
		n.counts.ready.Add(1)
	}
	written.ManagedFields = nil
	n.mu.Lock()
	defer n.mu.Unlock()
	if run := n.runs[key]; run != nil && run.uid == written.UID {
		run.written = written
	}
	return nil
}

// statusPatch turns the status of the pod into the other one.
func statusPatch(pod *corev1.Pod, status *corev1.PodStatus) ([]byte, error) {
	before, err := json.Marshal(corev1.Pod{Status: pod.Status})
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	after, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Status: *status})
	if err != nil {
		return nil, fmt.Errorf("encode the next status: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("compare the statuses: %w", err)
	}
	return patch, nil
}

func (n *Nodes) remove(ctx context.Context, pod *corev1.Pod) error {
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	if err := n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options); err != nil {
		return fmt.Errorf("remove pod %s: %w", keyOf(pod), err)
	}
	n.counts.removed.Add(1)
	return nil
}

func (n *Nodes) forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.runs, key)
	n.place(key, nil)
}

// cached returns the pod as the watch last saw it; it must not be changed. Nil if there is none.
func (n *Nodes) cached(key types.NamespacedName) *corev1.Pod {
	object, exists, err := n.pods.GetStore().GetByKey(key.String())
	if err != nil || !exists {
		return nil
	}
	pod, _ := object.(*corev1.Pod)
	return pod
}

// image returns how an image behaves; n.mu is held.
func (n *Nodes) image(name string) Image { return n.images[name] }

func (n *Nodes) silent(pod *corev1.Pod) bool {
	for i := range pod.Spec.Containers {
		if n.image(pod.Spec.Containers[i].Image).Silent {
			return true
		}
	}
	return false
}

// newer reports whether a is a later version than b of the same pod.
func newer(a, b *corev1.Pod) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order > 0 && a.UID == b.UID
}

func isReady(s *corev1.PodStatus) bool {
	c := findCondition(s, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

func keyOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

func podIP(i uint32) string {
	return fmt.Sprintf("10.%d.%d.%d", 64+i>>16&127, i>>8&255, i&255)
}
