package workloadspread

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/later"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/plan"
)

const (
	// unknownRetry is how long to wait for a workload of a kind that the cluster does not serve, or that the operator may
	// not read: no event reports when that changes.
	unknownRetry = 30 * time.Second
	// latestRetry is how long to wait for the revision of new pods: a status that shows it wakes no spread.
	latestRetry = time.Second
	// selectorRetry is how long to wait for the selector of a workload if its pods do not name it: a status that shows it
	// wakes no spread.
	selectorRetry = time.Minute
	// lookups is how many pods are read from the server at a time.
	lookups = 10
)

// Snapshots reads the state of spreads. Its memory brings events to their spread, and delays the end of places; a new process
// does without it.
type Snapshots struct {
	SnapshotOptions
	// watch gets the kinds of targets.
	watch  func(context.Context, schema.GroupKind) error
	owners *owners
	sights *sights
}

// SnapshotOptions are the sources and the settings of Snapshots.
type SnapshotOptions struct {
	// Cached is the cache, with the indexes of AddIndexes. Live reads the server.
	Cached *fastclient.Reader
	Live   client.Reader
	// Workloads reads the targets.
	Workloads *workloads.Reader
	// Versioned are the kinds of workloads with separate places for each revision.
	Versioned subsets.Versioned
	// Pause is how long a subset gets no new pods after pods were unschedulable there.
	Pause time.Duration
	Clock clock.PassiveClock
}

// NewSnapshots returns Snapshots that remember nothing yet.
func NewSnapshots(o SnapshotOptions) *Snapshots {
	return &Snapshots{
		SnapshotOptions: o,
		owners:          newOwners(),
		sights:          newSights(),
		watch:           func(context.Context, schema.GroupKind) error { return nil },
	}
}

// Read reads the state of one spread without the refusals of its writes, and when to look again for changes without an event;
// 0 means never.
func (r *Snapshots) Read(ctx context.Context, spread *v1beta1.WorkloadSpread) (s plan.Snapshot, again time.Duration, err error) {
	key := client.ObjectKeyFromObject(spread)
	s = plan.Snapshot{
		Spread: spread,
		Pause:  r.Pause,
		Now:    r.Clock.Now(),
	}
	s.Seen = r.sights.look(s.Spread, s.Now)
	workload, err := r.Workloads.Get(ctx, s.Spread)
	if err != nil {
		return s, 0, hidden("read the target", err)
	}
	s.Target = plan.Target{Replicas: new(int32(0)), Latest: v1beta1.VersionIgnored}
	if err := r.watch(ctx, workloads.KindOf(s.Spread.Spec.TargetReference)); err != nil {
		return s, 0, err
	}
	switch {
	case workload == nil:
		s.Target.Missing = true
		r.owners.set(key, nil)
		return s, unknownRetry, nil
	case workload.DeletionTimestamp != nil:
		r.owners.set(key, nil)
		return s, 0, nil
	}
	children, err := r.Workloads.Children(ctx, workload)
	if err != nil {
		return s, 0, hidden("read the owners of pods", err)
	}
	if err := r.readTarget(ctx, &s, workload, children); err != nil {
		return s, 0, err
	}
	if again, err = r.readPods(ctx, &s, workload, children); s.Target.Latest == "" {
		again = latestRetry
	}
	return s, again, err
}

func (r *Snapshots) readTarget(
	ctx context.Context, s *plan.Snapshot, workload *metav1.PartialObjectMetadata, children []*metav1.PartialObjectMetadata,
) (err error) {
	kind := workload.GroupVersionKind().GroupKind()
	s.Target = plan.Target{
		HasCosts:  workloads.HasCosts(kind),
		Versioned: r.Versioned,
		Versions:  workloads.Versions(workload, children),
	}
	if s.Target.Latest, err = r.Workloads.Latest(ctx, workload, children, r.Versioned); err != nil {
		return hidden("read the revision of the target", err)
	}
	if workloads.HasOrdinals(kind) {
		ordinals, err := r.Workloads.Ordinals(ctx, workload)
		if err != nil {
			return hidden("read the ordinals of the target", err)
		}
		s.Target.Ordinals = &ordinals
	}
	if subsets.HasLabels(s.Spread) {
		if s.Target.Selector, err = r.Workloads.SelectorKeys(ctx, workload); err != nil {
			return hidden("read the selector of the target", err)
		}
	}
	if subsets.NeedsReplicas(s.Spread) && !workloads.HasOrdinals(kind) {
		s.Target.Replicas, err = r.Workloads.Replicas(ctx, s.Spread, workload)
		if err = hidden("read the replicas of the target", err); workloads.IsHopeless(err) {
			s.Target.Replicas = nil
			s.Target.Unknown = err
			err = nil
		}
	}
	return err
}

// readPods reads the pods of the workload and the values that decide about them. If no pod names the workload, or an object
// between, as its controller, its scale selects them.
func (r *Snapshots) readPods(
	ctx context.Context, s *plan.Snapshot, workload *metav1.PartialObjectMetadata, children []*metav1.PartialObjectMetadata,
) (again time.Duration, err error) {
	owners := []types.UID{workload.UID}
	for _, child := range children {
		owners = append(owners, child.UID)
	}
	r.owners.set(client.ObjectKeyFromObject(s.Spread), owners)
	named, err := r.Naming(ctx, client.ObjectKeyFromObject(s.Spread)) // before the others, so that none of them is missed
	if err != nil {
		return 0, err
	}
	if s.Pods, err = r.controlled(ctx, s.Spread.Namespace, owners); err != nil {
		return 0, err
	}
	if len(s.Pods) == 0 {
		if s.Pods, again, err = r.selected(ctx, s.Spread, workload); err != nil {
			return 0, err
		}
	}
	if s.Target.Deletable, err = r.deletable(ctx, s.Spread, workload, s.Pods); err != nil {
		return 0, err
	}
	if s.Pods, err = filtered(s.Spread, s.Pods); err != nil {
		return 0, err
	}
	if err := r.leaveToRivals(ctx, s, workload, children); err != nil {
		return 0, err
	}
	s.Left = left(s.Pods, named, owners)
	if s.Nodes, err = r.nodes(ctx, s.Spread, s.Pods); err != nil {
		return 0, err
	}
	s.Whole, err = r.whole(ctx, plan.NeedsWhole(s.Spread, s.Pods, s.Nodes))
	return again, err
}

// deletable reads how many of its pods a Job can lose, if some may have to be deleted.
func (r *Snapshots) deletable(
	ctx context.Context, spread *v1beta1.WorkloadSpread, workload *metav1.PartialObjectMetadata, pods []*corev1.Pod,
) (*int32, error) {
	if workload.GroupVersionKind().GroupKind() != workloads.Job || !plan.NeedsDeletable(spread, pods) {
		return nil, nil
	}
	job := &batchv1.Job{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(workload), job); err != nil {
		return nil, hidden("read the failures of the target", err)
	}
	return new(plan.Deletable(job, pods)), nil
}

// whole reads pods from the server, some at a time, as the cache does not have the fields that patches may change.
func (r *Snapshots) whole(ctx context.Context, pods []*corev1.Pod) (map[types.UID]*corev1.Pod, error) {
	read := make([]*corev1.Pod, len(pods))
	all, reading := errgroup.WithContext(ctx)
	all.SetLimit(lookups)
	for i, pod := range pods {
		all.Go(func() error {
			whole := &corev1.Pod{}
			err := r.Live.Get(reading, client.ObjectKeyFromObject(pod), whole)
			switch {
			case err == nil:
				read[i] = whole
			case !apierrors.IsNotFound(err):
				return fmt.Errorf("read pod %s/%s: %w", pod.Namespace, pod.Name, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	found := map[types.UID]*corev1.Pod{}
	for _, whole := range read {
		if whole != nil {
			found[whole.UID] = whole
		}
	}
	return found, nil
}

// hidden returns nil for nil, and else an error that does not mean that the spread is gone.
func hidden(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, later.OfAnother(err))
}

// Naming returns the pods that name the spread and have controllers that choose victims by deletion costs.
func (r *Snapshots) Naming(ctx context.Context, key types.NamespacedName) ([]*corev1.Pod, error) {
	pods, err := fastclient.ByIndex[corev1.Pod](ctx, r.Cached, key.Namespace, spreadIndex, key.Name)
	if err != nil {
		return nil, fmt.Errorf("read the pods of workload spread %s: %w", key, err)
	}
	return slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
		ref := metav1.GetControllerOfNoCopy(pod)
		return ref == nil || !workloads.HasCosts(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind())
	}), nil
}

// controlled returns the pods that the owners control.
func (r *Snapshots) controlled(ctx context.Context, namespace string, owners []types.UID) (all []*corev1.Pod, err error) {
	for _, owner := range owners {
		pods, err := fastclient.Owned[corev1.Pod](ctx, r.Cached, namespace, owner)
		if err != nil {
			return nil, fmt.Errorf("read the pods of the target: %w", err)
		}
		all = append(all, slices.DeleteFunc(pods, func(pod *corev1.Pod) bool {
			ref := metav1.GetControllerOfNoCopy(pod)
			return ref == nil || ref.UID != owner
		})...)
	}
	return all, nil
}

// selected returns the pods without a controller that the scale of the workload selects.
func (r *Snapshots) selected(
	ctx context.Context, spread *v1beta1.WorkloadSpread, workload *metav1.PartialObjectMetadata,
) (all []*corev1.Pod, again time.Duration, err error) {
	selector, published, err := r.Workloads.Selector(ctx, workload)
	if err != nil {
		return nil, 0, hidden("read the selector of the target", err)
	}
	if !published {
		again = selectorRetry
	}
	if selector == nil {
		return nil, again, nil
	}
	r.owners.choose(client.ObjectKeyFromObject(spread), selector)
	if all, err = fastclient.Uncontrolled[corev1.Pod](ctx, r.Cached, spread.Namespace); err != nil {
		return nil, 0, fmt.Errorf("read the pods without a controller: %w", err)
	}
	return slices.DeleteFunc(all, func(pod *corev1.Pod) bool { return !selector.Matches(labels.Set(pod.Labels)) }), again, nil
}

// filtered returns the pods that the filter of the spread selects, oldest first.
func filtered(spread *v1beta1.WorkloadSpread, pods []*corev1.Pod) ([]*corev1.Pod, error) {
	if f := spread.Spec.TargetFilter; f != nil && f.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(f.Selector)
		if err != nil {
			return nil, fmt.Errorf("read spec.targetFilter.selector: %w", err)
		}
		pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return !selector.Matches(labels.Set(pod.Labels)) })
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return pods, nil
}

// nodes returns the nodes of pods that no subset of the spread has.
func (r *Snapshots) nodes(ctx context.Context, spread *v1beta1.WorkloadSpread, pods []*corev1.Pod) (map[string]*corev1.Node, error) {
	nodes := map[string]*corev1.Node{}
	for _, pod := range pods {
		name := pod.Spec.NodeName
		match, ok := subsets.MatchOf(pod)
		if name == "" || nodes[name] != nil || ok && match.Name == spread.Name || !podstate.IsActive(pod) {
			continue
		}
		node, err := fastclient.Get[corev1.Node](ctx, r.Cached, types.NamespacedName{Name: name})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read node %s: %w", name, err)
		default:
			nodes[name] = node
		}
	}
	return nodes, nil
}
