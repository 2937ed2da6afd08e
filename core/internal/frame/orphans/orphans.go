package orphans

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
)

const (
	// interval is how often the server is asked about a workload that does not change.
	interval = 10 * time.Minute
	// page is how many pods the server is asked for at a time.
	page = 500
)

// Finder is safe for concurrent use by workloads that differ.
type Finder struct {
	cached Cached
	live   client.Reader
	label  string

	workloads memory.Objects[*known]
}

// Cached lists the cached pods of a namespace that have no controller. They must not be changed.
type Cached func(ctx context.Context, namespace string) ([]*corev1.Pod, error)

// New returns a finder.
func New(cached Cached, live client.Reader, label string) *Finder {
	return &Finder{cached: cached, live: live, label: label}
}

// Search describes the pods to look for and their workload.
type Search struct {
	// Owner is the workload. One that is being deleted adopts no pod.
	Owner client.Object
	// Selector is the workload's selector. If it matches every pod, or none, there are no orphans.
	Selector *metav1.LabelSelector
	// Pods are the workload's own pods in the cache, in any state.
	Pods []*corev1.Pod
	// Wanted reports whether the workload adopts a pod without a controller; nil means every one.
	Wanted func(*corev1.Pod) bool
	// Replicas is how many pods the workload wants; nil where that is unknown.
	Replicas *int32
	// Counted is the number of pods in the workload's status, and Observed the generation of that status.
	Counted  int32
	Observed int64
}

// isComplete reports whether the cache shows as many pods as the workload wants and as its status has.
func (s *Search) isComplete() bool {
	n := int32(len(s.Pods))
	return s.Replicas != nil && *s.Replicas == n && s.Counted == n && s.Observed == s.Owner.GetGeneration()
}

// Found has the pods that could be the workload's.
type Found struct {
	// Orphans have no controller, match the selector, are wanted, and are not being deleted.
	Orphans []*corev1.Pod
	// Own are the workload's pods that the cache does not show, in any state and with any labels.
	Own []*corev1.Pod
	// Taken are the names of pods and claims that pods of others use, as far as they were in the way of the workload,
	// each with the time until which that is remembered: an interval after it was seen. The cache need not show such
	// pods. It must not be changed.
	Taken map[string]time.Time
}

// Find returns the lost pods of the workload. A pod that the server has returned is read again until it is in the cache
// or no longer the workload's.
func (f *Finder) Find(ctx context.Context, s Search, now time.Time) (Found, error) {
	selector, err := metav1.LabelSelectorAsSelector(s.Selector)
	if err != nil || s.Selector == nil || selector.Empty() || s.Owner.GetDeletionTimestamp() != nil {
		return Found{}, nil //nolint:nilerr // a selector that selects nothing has no orphans; the plan reports it
	}
	var found Found
	if found.Orphans, err = f.look(ctx, &s, selector); err != nil {
		return found, err
	}
	m := f.recall(s.Owner)
	m.follow(s.Pods, found.Orphans)
	maps.DeleteFunc(m.taken, func(_ string, until time.Time) bool { return !now.Before(until) })
	found.Taken = m.taken
	q := m.next(&s, now)
	if q == nothing {
		return found, nil
	}
	hidden, err := f.ask(ctx, &s, selector, q)
	if err != nil {
		return Found{}, err
	}
	if q == all {
		relabelled, err := f.get(ctx, &s, m.missing(hidden.Own))
		if err != nil {
			return Found{}, err
		}
		hidden.Own = append(hidden.Own, relabelled...)
	}
	hidden.Orphans = slices.DeleteFunc(hidden.Orphans, func(o *corev1.Pod) bool { return s.shows(o) || has(found.Orphans, o) })
	m.answered(&s, q, hidden, now)
	found.Orphans = append(found.Orphans, hidden.Orphans...)
	found.Own = hidden.Own
	return found, nil
}

// look finds the orphans with the label.
func (f *Finder) look(ctx context.Context, s *Search, selector labels.Selector) ([]*corev1.Pod, error) {
	pods, err := f.cached(ctx, s.Owner.GetNamespace())
	if err != nil {
		return nil, fmt.Errorf("list pods without a controller: %w", err)
	}
	var found []*corev1.Pod
	for _, pod := range pods {
		if s.wants(pod, selector) {
			found = append(found, pod)
		}
	}
	return found, nil
}

// ask finds the pods without the label.
func (f *Finder) ask(ctx context.Context, s *Search, selector labels.Selector, q question) (Found, error) {
	unlabelled, err := labels.NewRequirement(f.label, selection.DoesNotExist, nil)
	if err != nil {
		return Found{}, fmt.Errorf("select pods without label %s: %w", f.label, err)
	}
	asked := selector.Add(*unlabelled)
	if q == all {
		asked = labels.NewSelector().Add(*unlabelled)
	}
	var found Found
	for list := (&corev1.PodList{}); ; {
		options := []client.ListOption{
			client.InNamespace(s.Owner.GetNamespace()), client.MatchingLabelsSelector{Selector: asked}, client.Limit(page), client.Continue(list.Continue),
		}
		list = &corev1.PodList{}
		if err := f.live.List(ctx, list, options...); err != nil {
			return Found{}, fmt.Errorf("list pods without label %s: %w", f.label, err)
		}
		for i := range list.Items {
			switch o := &list.Items[i]; {
			case metav1.IsControlledBy(o, s.Owner) && !s.shows(o):
				found.Own = append(found.Own, o.DeepCopy()) // a pointer into the page would keep all of it
			case s.wants(o, selector):
				found.Orphans = append(found.Orphans, o.DeepCopy())
			}
		}
		if list.Continue == "" {
			return found, nil
		}
	}
}

// get reads pods of the workload by name: a pod that has its label again is not listed among those without, and may not
// be in the cache yet.
func (f *Finder) get(ctx context.Context, s *Search, names []string) ([]*corev1.Pod, error) {
	var found []*corev1.Pod
	for _, name := range names {
		pod := &corev1.Pod{}
		err := f.live.Get(ctx, types.NamespacedName{Namespace: s.Owner.GetNamespace(), Name: name}, pod)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("look for pod %s: %w", name, err)
		case metav1.IsControlledBy(pod, s.Owner) && !s.shows(pod):
			found = append(found, pod)
		}
	}
	return found, nil
}

// wants reports whether the workload takes the pod.
func (s *Search) wants(pod *corev1.Pod, selector labels.Selector) bool {
	return metav1.GetControllerOfNoCopy(pod) == nil && pod.DeletionTimestamp == nil &&
		selector.Matches(labels.Set(pod.Labels)) && (s.Wanted == nil || s.Wanted(pod))
}

// shows reports whether the cache, which may be behind, still has the pod.
func (s *Search) shows(pod *corev1.Pod) bool { return has(s.Pods, pod) }

// has reports whether the pod is among the pods, in whatever version.
func has(pods []*corev1.Pod, pod *corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(o *corev1.Pod) bool { return o.UID == pod.UID })
}

// Follow records the changes of a pass to pods and the names that blocked it. A name that is taken by a pod of the
// workload itself is taken by one that the cache does not show; a create without an answer may have left such a pod,
// too.
func (f *Finder) Follow(workload memory.Key, results []progress.Outcome, now time.Time) {
	for i := range results {
		r := &results[i]
		_, isPod := r.Action.Object.(*corev1.Pod)
		done := r.State == progress.Done
		verb := r.Action.Verb
		name := r.Action.Object.GetName()
		switch {
		case errors.Is(r.Err, progress.ErrNameTaken), r.ClaimMounted():
			f.NameTaken(workload, name, now)
		case !isPod:
		case verb == action.Create && done:
			f.Created(workload, r.Object)
		case verb == action.Create && (r.State == progress.Failed || apierrors.IsAlreadyExists(r.Err)):
			f.Recheck(workload)
		case done && (verb == action.Delete || verb == action.Release):
			f.Removed(workload, r.Action.Object.GetUID())
		}
	}
}

// Created records that a pod was created for the workload. It can get lost before the cache shows it.
func (f *Finder) Created(workload memory.Key, pod metav1.Object) {
	f.tell(workload, func(m *known) { m.pods[pod.GetUID()] = seen{pod.GetName(), m.looks} })
}

// Removed records that the workload has deleted or released a pod, so that it does not count as lost.
func (f *Finder) Removed(workload memory.Key, pod types.UID) {
	f.tell(workload, func(m *known) { delete(m.pods, pod) })
}

// Recheck records that the workload may have a pod that the cache does not show: its name blocks a new pod, or its
// create had no answer.
func (f *Finder) Recheck(workload memory.Key) {
	f.tell(workload, func(m *known) { m.recheck = true })
}

// NameTaken records that a pod of another owner has the name of a pod that was to be created, or mounts the claim that
// was to be deleted.
func (f *Finder) NameTaken(workload memory.Key, name string, now time.Time) {
	f.tell(workload, func(m *known) { m.taken[name] = now.Add(interval) })
}

func (f *Finder) tell(workload memory.Key, change func(*known)) {
	if m, ok := f.workloads.Get(workload); ok {
		change(m)
	}
}

// Forget drops the memory of a workload that is gone.
func (f *Finder) Forget(name types.NamespacedName) { f.workloads.Forget(name) }

// recall returns the memory of the workload.
func (f *Finder) recall(owner client.Object) *known {
	key := memory.KeyOf(owner)
	m, ok := f.workloads.Get(key)
	if !ok {
		m = &known{
			uid:   key.UID,
			pods:  map[types.UID]seen{},
			taken: map[string]time.Time{},
		}
		f.workloads.Set(key, m)
	}
	return m
}

// spread distributes the first lists for many workloads over an interval.
func spread(uid types.UID) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid)) // the hash never returns an error
	return time.Duration(h.Sum64() % uint64(interval))
}
