package admission

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
)

// Pods has the webhooks of pods.
type Pods struct {
	Spreads *List
	// Workloads reads the owners of pods.
	Workloads *workloads.Reader
	// Cached returns a pod from the cache, and All returns the pods of a namespace.
	Cached func(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error)
	All    func(ctx context.Context, namespace string) ([]*corev1.Pod, error)
	Places Places
	// Versioned are the kinds of workloads with separate places for each revision.
	Versioned subsets.Versioned
	// Unplaced is called for each new pod of a spread that gets no subset.
	Unplaced func(namespace, spread string, reason Reason)
	Clock    clock.PassiveClock
}

// Reason is the cause why a new pod gets no subset.
type Reason string

const (
	// NoRoom means that no subset has room: the pod is created as it is.
	NoRoom Reason = "NoRoom"
	// Busy means that no place could be written in time: the pod is refused, and its controller tries again.
	Busy Reason = "Busy"
	// BadPatch means that the subset's patch does not fit the pod, which is refused.
	BadPatch Reason = "Patch"
)

func pods() admission.Kind[*corev1.Pod] {
	return admission.NewKind("", "Pod", admission.Hub[corev1.Pod]("v1"))
}

// Mutating puts new pods into subsets.
func (w *Pods) Mutating() admission.Endpoint {
	return admission.Endpoint{Path: pods().MutatePath(), Handler: pods().Mutating(w.Create)}
}

// Validating notes which pods are being deleted or evicted. It never refuses.
func (w *Pods) Validating() admission.Endpoint {
	handler := pods().Validating(w.remove).Subresource("eviction", admission.Evictions().Validating(w.evict))
	return admission.Endpoint{Path: pods().ValidatePath(), Handler: handler}
}

// member is a pod of the workload that a spread targets.
type member struct {
	spread     *v1beta1.WorkloadSpread
	workload   *metav1.PartialObjectMetadata
	controller *metav1.PartialObjectMetadata // of the pod: the workload, or an object between
	version    string
}

// Create puts a new pod into its subset: it changes Request.New. It is Mutating without the request of a server.
func (w *Pods) Create(ctx context.Context, req admission.Request[*corev1.Pod]) (admission.Findings, error) {
	pod := req.New
	if req.Operation != admissionv1.Create || req.DryRun || !podstate.IsActive(pod) {
		return admission.Findings{}, nil
	}
	m, err := w.find(ctx, req.Namespace, pod)
	if err != nil || m == nil {
		return admission.Findings{}, err
	}
	spread, i, match, err := w.place(ctx, m, pod)
	switch {
	case apierrors.IsNotFound(err): // the spread, or its workload
		return admission.Findings{}, nil
	case err != nil:
		w.unplaced(m, Busy)
		return admission.Findings{}, busy(m.spread, err)
	case i == subsets.None:
		w.unplaced(m, NoRoom)
		delete(pod.Annotations, v1beta1.MatchedAnnotation) // a copy of another pod's
		return admission.Findings{Warnings: []string{fmt.Sprintf("the pod gets no subset of WorkloadSpread %s: all subsets that match it are full", m.spread.Name)}}, nil
	}
	selector := func() []string { return w.selectorKeys(ctx, m.controller) }
	if err := subsets.Inject(pod, &spread.Spec.Subsets[i], match, selector); err != nil {
		w.unplaced(m, BadPatch)
		return admission.Findings{}, apierrors.NewBadRequest(fmt.Sprintf("WorkloadSpread %s: %v", m.spread.Name, err))
	}
	if workloads.HasCosts(m.workload.GroupVersionKind().GroupKind()) {
		subsets.SetCost(pod, spread, i)
	}
	return admission.Findings{}, nil
}

// unplaced reports a pod of the spread that gets no subset now.
func (w *Pods) unplaced(m *member, reason Reason) {
	w.Unplaced(m.spread.Namespace, m.spread.Name, reason)
}

// selectorKeys returns the labels by which the controller of a pod selects it. A patch is not refused for want of them.
func (w *Pods) selectorKeys(ctx context.Context, controller *metav1.PartialObjectMetadata) []string {
	keys, err := w.Workloads.SelectorKeys(ctx, controller)
	if err != nil {
		log.FromContext(ctx).Info("Failed to read the selector of a workload", "workload", controller.Kind+" "+controller.Name, "error", err.Error())
	}
	return keys
}

// busy is an error after which clients try again.
func busy(spread *v1beta1.WorkloadSpread, err error) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("WorkloadSpread %s could not assign a subset; retry: %v", spread.Name, err))
}

// find returns the spread of a pod with its workload, nil if there is none.
func (w *Pods) find(ctx context.Context, namespace string, pod *corev1.Pod) (*member, error) {
	ref := metav1.GetControllerOfNoCopy(pod)
	// Any client that reaches the port can send such pods; the API server stores none.
	if ref == nil || ref.UID == "" || len(pod.Name) > validation.DNS1123SubdomainMaxLength {
		return nil, nil
	}
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	if !w.Workloads.Config().Follows(ctx, kind) {
		return nil, nil
	}
	// Pods that no spread can want wait for no cache of their owners.
	if !w.Spreads.mayHave(ctx, namespace, func(s *v1beta1.WorkloadSpread) bool {
		return workloads.MayControl(workloads.KindOf(s.Spec.TargetReference), kind)
	}) {
		return nil, nil
	}
	owners, unknown := w.Workloads.Owners(ctx, namespace, pod)
	spread, err := w.Spreads.find(ctx, namespace, func(s *v1beta1.WorkloadSpread) bool {
		return targetAmong(owners, s) != nil && subsets.Selects(s, pod.Labels)
	})
	if err != nil {
		return nil, err
	}
	if spread != nil {
		return &member{spread, targetAmong(owners, spread), owners[0], w.versionOf(pod, owners[0])}, nil
	}
	if unknown != nil && !apierrors.IsForbidden(unknown) { // a right that is missing does not come by waiting
		return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("failed to read the owners of the pod; retry: %v", unknown))
	}
	return nil, nil
}

// versionOf returns the revision of a pod. Its controller confirms it if that shows its own.
func (w *Pods) versionOf(pod *corev1.Pod, controller *metav1.PartialObjectMetadata) string {
	return subsets.VersionAmong(workloads.Versions(controller, nil), pod, w.Versioned)
}

// targetAmong returns the owner that the spread targets. Its version does not matter.
func targetAmong(owners []*metav1.PartialObjectMetadata, spread *v1beta1.WorkloadSpread) *metav1.PartialObjectMetadata {
	ref := spread.Spec.TargetReference
	if ref == nil || spread.DeletionTimestamp != nil {
		return nil
	}
	for _, o := range owners {
		if o.Name == ref.Name && o.GroupVersionKind().GroupKind() == workloads.KindOf(ref) {
			return o
		}
	}
	return nil
}

// place returns the index of a new pod's subset, None for none, in the spread as it was when the place was taken, and the
// content of the pod's annotation.
func (w *Pods) place(ctx context.Context, m *member, pod *corev1.Pod) (spread *v1beta1.WorkloadSpread, i int, match v1beta1.Match, err error) {
	spread = m.spread
	match = v1beta1.Match{Name: m.spread.Name}
	if workloads.HasOrdinals(m.workload.GroupVersionKind().GroupKind()) {
		i, err = w.byOrdinal(ctx, m, pod.Name)
	} else {
		spread, i, err = w.byRoom(ctx, m, pod, &match)
	}
	if err != nil || i == subsets.None {
		return spread, subsets.None, match, err
	}
	match.Subset = spread.Spec.Subsets[i].Name
	return spread, i, match, nil
}

func (w *Pods) byOrdinal(ctx context.Context, m *member, name string) (int, error) {
	ordinals, err := w.Workloads.Ordinals(ctx, m.workload)
	if err != nil {
		return subsets.None, err
	}
	rank, ok := ordinals.Rank(name)
	if !ok {
		return subsets.None, nil
	}
	return subsets.SubsetOfRank(m.spread, subsets.Limits(m.spread, nil), rank), nil
}

// byRoom takes a place for the pod. It returns the spread as it was when the place was taken.
func (w *Pods) byRoom(ctx context.Context, m *member, pod *corev1.Pod, match *v1beta1.Match) (*v1beta1.WorkloadSpread, int, error) {
	if s := m.spread.Spec.Subsets; len(s) == 1 && s[0].MaxReplicas == nil {
		return m.spread, 0, nil
	}
	replicas, err := w.replicas(ctx, m)
	if err != nil {
		return nil, subsets.None, err
	}
	id := pod.Name
	if id == "" {
		id = string(uuid.NewUUID())
		match.UID = id
	}
	var used *v1beta1.WorkloadSpread
	i := subsets.None
	err = w.Places.Enter(ctx, client.ObjectKeyFromObject(m.spread), Request{
		replicas: replicas,
		counted:  func(version string) map[string]int32 { return w.counted(ctx, m.spread, version) },
		enter: func(b *subsets.Books, gone func(string) bool) {
			used = b.Spread()
			now := metav1.NewTime(w.Clock.Now()).Rfc3339Copy()
			l := b.Ledger(m.version)
			if !l.Has(id) { // a pod that tries again finds its own place
				l.Recycle(now, gone, func() (int32, bool) { return w.wanted(ctx, m) })
			}
			i = l.Admit(id, now, gone)
		},
	})
	if err != nil { // the request may still be under way
		return nil, subsets.None, err
	}
	return used, i, nil
}

// wanted returns how many pods of the member's version there are at most, and whether that is known.
func (w *Pods) wanted(ctx context.Context, m *member) (int32, bool) {
	owner := m.workload
	if m.version != v1beta1.VersionIgnored {
		owner = m.controller // a revision of a Deployment has a ReplicaSet of its own
	}
	most, known, err := w.Workloads.Most(ctx, owner)
	if err != nil {
		log.FromContext(ctx).Info("Failed to read the replicas of a workload", "workload", owner.Kind+" "+owner.Name, "error", err.Error())
	}
	return most, known && err == nil
}

// counted returns how many active pods of a version name the spread, by subset. Pods that are known to be of another
// workload are none of its, whatever they name.
func (w *Pods) counted(ctx context.Context, spread *v1beta1.WorkloadSpread, version string) map[string]int32 {
	pods, err := w.All(ctx, spread.Namespace)
	if err != nil {
		log.FromContext(ctx).Info("Failed to count the pods of a WorkloadSpread", "workloadspread", spread.Namespace+"/"+spread.Name, "error", err.Error())
	}
	n, own := map[string]int32{}, map[types.UID]bool{}
	for _, pod := range pods {
		m, ok := subsets.MatchOf(pod)
		if !ok || m.Name != spread.Name || !podstate.IsActive(pod) || subsets.VersionOf(pod, w.Versioned) != version {
			continue
		}
		controller := types.UID("")
		if c := metav1.GetControllerOfNoCopy(pod); c != nil {
			controller = c.UID
		}
		if _, known := own[controller]; !known { // pods of one controller belong to one workload
			owners, err := w.Workloads.Owners(ctx, spread.Namespace, pod)
			own[controller] = err != nil || targetAmong(owners, spread) != nil
		}
		if own[controller] {
			n[m.Subset]++
		}
	}
	return n
}

// replicas returns how many pods the workload wants, if that matters. They are unknown if they cannot be found out: no pod
// is refused for that, and the controller reports it.
func (w *Pods) replicas(ctx context.Context, m *member) (*int32, error) {
	if !subsets.NeedsReplicas(m.spread) {
		return nil, nil
	}
	n, err := w.Workloads.Replicas(ctx, m.spread, m.workload)
	if workloads.IsHopeless(err) {
		return nil, nil
	}
	return n, err
}

// remove notes a deletion.
func (w *Pods) remove(ctx context.Context, req admission.Request[*corev1.Pod]) (admission.Findings, error) {
	if req.Operation == admissionv1.Delete && !req.DryRun {
		w.note(ctx, req.Namespace, req.Old)
	}
	return admission.Findings{}, nil
}

// evict notes an eviction. Its request holds no pod.
func (w *Pods) evict(ctx context.Context, req admission.Request[*policyv1.Eviction]) (admission.Findings, error) {
	dryRun := req.DryRun || req.New.DeleteOptions != nil && slices.Contains(req.New.DeleteOptions.DryRun, metav1.DryRunAll)
	if req.Operation != admissionv1.Create || dryRun {
		return admission.Findings{}, nil
	}
	// A pod that the cache does not have yet is not counted yet, either.
	if pod, err := w.Cached(ctx, types.NamespacedName{Namespace: req.Namespace, Name: req.Name}); err == nil {
		w.note(ctx, req.Namespace, pod)
	}
	return admission.Findings{}, nil
}

// note notes that a pod is about to go. Errors are only logged: the controller counts pods anyway.
func (w *Pods) note(ctx context.Context, namespace string, pod *corev1.Pod) {
	match, ok := subsets.MatchOf(pod)
	if !ok || !podstate.IsActive(pod) || metav1.GetControllerOfNoCopy(pod) == nil {
		return
	}
	if err := w.leave(ctx, namespace, pod, match); client.IgnoreNotFound(err) != nil {
		log.FromContext(ctx).Info("Failed to record a deletion", "pod", namespace+"/"+pod.Name, "error", err.Error())
	}
}

func (w *Pods) leave(ctx context.Context, namespace string, pod *corev1.Pod, match v1beta1.Match) error {
	key := types.NamespacedName{Namespace: namespace, Name: match.Name}
	spread, err := w.Places.Known(ctx, key)
	if err != nil || !isLimited(spread, match.Subset) {
		return err
	}
	m, err := w.find(ctx, namespace, pod)
	if err != nil || m == nil || m.spread.Name != match.Name || workloads.HasOrdinals(m.workload.GroupVersionKind().GroupKind()) {
		return err
	}
	replicas, err := w.replicas(ctx, m)
	if err != nil {
		return err
	}
	return w.Places.Enter(ctx, key, Request{
		replicas: replicas,
		pod:      pod.Name,
		enter: func(b *subsets.Books, gone func(string) bool) {
			if !gone(pod.Name) {
				b.Ledger(m.version).Leave(match.Subset, pod.Name, match.UID, metav1.NewTime(w.Clock.Now()).Rfc3339Copy())
			}
		},
	})
}

func isLimited(spread *v1beta1.WorkloadSpread, subset string) bool {
	for i := range spread.Spec.Subsets {
		if s := &spread.Spec.Subsets[i]; s.Name == subset {
			return s.MaxReplicas != nil
		}
	}
	return false
}
