package plan

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/core/pods/imageref"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// minWake avoids passes shortly after each other.
const minWake = 3 * time.Second

// Plan is the result of one pass over a NodeImage.
type Plan struct {
	action.Plan
	// Status is the next status, nil if this pass does not change it. It belongs to the stored spec: if the plan
	// changes the spec, the status waits for the next pass.
	Status *v1beta1.NodeImageStatus
	// Failures are the pulls that Status gives up.
	Failures []Failure
}

// Failure is a pull that is given up because no agent reported its end.
type Failure struct {
	Image   imageref.Ref
	Message string
	// Owners are the owners of the tag.
	Owners []corev1.ObjectReference
}

// Compute makes the plan of one pass. It never changes the snapshot.
func Compute(s Snapshot) Plan {
	p := Plan{Plan: action.Plan{Refusals: s.Refusals, Now: s.Now}}
	switch {
	case s.Image == nil:
		create(s, &p)
	case s.Image.DeletionTimestamp != nil:
	case hasGone(s.Node) && !isFake(s.Image):
		p.Add(action.Step{Name: "delete", Actions: []action.Action{{
			Verb:    action.Delete,
			Object:  s.Image,
			Reason:  "NodeGone",
			Message: "the node is gone",
		}}})
	default:
		keep(s, &p)
	}
	p.Plan = action.Admit(p.Plan)
	return p
}

func hasGone(node *corev1.Node) bool { return node == nil || node.DeletionTimestamp != nil }

func isFake(image *v1beta1.NodeImage) bool {
	_, fake := image.Labels[v1beta1.FakeNodeImageLabel]
	return fake
}

// IsVirtual reports whether the node is a virtual node, on which no agent runs.
func IsVirtual(node *corev1.Node) bool {
	return node.Labels[v1beta1.NodeTypeLabel] == v1beta1.VirtualKubelet
}

// ReadySince returns when the node became ready; false while it is not.
func ReadySince(node *corev1.Node) (time.Time, bool) {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

// HasDiskPressure reports whether the node lacks space for images.
func HasDiskPressure(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeDiskPressure && c.Status == corev1.ConditionTrue
	})
}

// create creates the NodeImage of a node that has been ready for CreationDelay.
func create(s Snapshot, p *Plan) {
	if hasGone(s.Node) || IsVirtual(s.Node) {
		return
	}
	since, ready := ReadySince(s.Node)
	if !ready {
		return
	}
	if left := s.CreationDelay - s.Now.Sub(since); left > 0 {
		p.Wait(WaitNodeReady, s.Node.Name, "the node must be ready for %s first", s.CreationDelay)
		p.RequeueWithin(left)
		return
	}
	p.Add(action.Step{Name: "create", Actions: []action.Action{{
		Verb:    action.Create,
		Reason:  "NodeReady",
		Message: "the node is ready",
		Object: &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{
			Name:            s.Node.Name,
			Labels:          maps.Clone(s.Node.Labels),
			OwnerReferences: []metav1.OwnerReference{ownedBy(s.Node)},
		}},
	}}})
}

// ownedBy returns the owner reference through which a NodeImage is deleted with its node while no manager runs.
func ownedBy(node *corev1.Node) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "v1",
		Kind:       "Node",
		Name:       node.Name,
		UID:        node.UID,
	}
}

// keep updates metadata and spec of an existing NodeImage, and then its status.
func keep(s Snapshot, p *Plan) {
	body := map[string]any{}
	if meta := metadata(s); len(meta) > 0 {
		body["metadata"] = meta
	}
	if images := clean(s, p); len(images) > 0 {
		body["spec"] = map[string]any{"images": images}
	}
	if len(body) == 0 {
		supervise(s, p)
		return
	}
	verb := action.PatchMetadata
	if body["spec"] != nil {
		verb = action.PatchSpec
	}
	p.Add(action.Step{Name: "keep", Actions: []action.Action{{
		Verb:    verb,
		Object:  s.Image,
		Reason:  "InOrder",
		Message: "metadata is copied from the node, and finished entries are removed",
		Patches: []action.Patch{{Type: types.MergePatchType, Body: body}},
	}}})
	if p.Empty() { // it was refused and waits: pulls have their ends all the same
		supervise(s, p)
	}
}

// metadata returns the changes of labels, annotations and owner references that follow the node.
func metadata(s Snapshot) map[string]any {
	meta := map[string]any{}
	if hasGone(s.Node) {
		return meta
	}
	if labels := labelChanges(s.Image.Labels, s.Node.Labels); len(labels) > 0 {
		meta["labels"] = labels
	}
	if _, told := s.Image.Annotations[v1beta1.DiskPressureAnnotation]; told != HasDiskPressure(s.Node) {
		meta["annotations"] = map[string]any{v1beta1.DiskPressureAnnotation: nil}
		if !told {
			meta["annotations"] = map[string]any{v1beta1.DiskPressureAnnotation: "true"}
		}
	}
	owner := ownedBy(s.Node)
	if !slices.Contains(s.Image.OwnerReferences, owner) {
		others := slices.DeleteFunc(slices.Clone(s.Image.OwnerReferences), func(ref metav1.OwnerReference) bool {
			return ref.Kind == owner.Kind && ref.APIVersion == owner.APIVersion
		})
		meta["ownerReferences"] = append(others, owner)
	}
	return meta
}

// labelChanges returns the merge patch from one set of labels to another.
func labelChanges(have, want map[string]string) map[string]any {
	changes := map[string]any{}
	for key, value := range want {
		if now, ok := have[key]; !ok || now != value {
			changes[key] = value
		}
	}
	for key := range have {
		if _, stays := want[key]; !stays && key != v1beta1.FakeNodeImageLabel {
			changes[key] = nil
		}
	}
	return changes
}
