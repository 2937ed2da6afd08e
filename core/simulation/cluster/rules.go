package cluster

import (
	"fmt"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// validateUpdate returns whether the change from old to n changes the spec, and the errors with which a server rejects
// it through the subresource. A forbidden change that a real server drops without an error is an error here.
func validateUpdate(subresource string, old, n action.Object) (specChanged bool, errs field.ErrorList) {
	errs = validateMetadata(subresource, old, n)
	var spec, status bool
	switch n := n.(type) {
	case *corev1.Pod:
		o := old.(*corev1.Pod)
		spec, status = !Same(o.Spec, n.Spec), !Same(o.Status, n.Status)
		if spec {
			errs = append(errs, validatePodSpec(subresource, o, n)...)
		}
	case *corev1.PersistentVolumeClaim:
		o := old.(*corev1.PersistentVolumeClaim)
		status = !Same(o.Status, n.Status)
		bare := n.Spec.DeepCopy()
		bare.Resources.Requests = o.Spec.Resources.Requests
		switch {
		case !Same(o.Spec, *bare):
			errs = append(errs, forbidden("spec", "only the requested storage may change"))
		case !Same(o.Spec, n.Spec) && o.Status.Phase != corev1.ClaimBound:
			errs = append(errs, forbidden("spec", "the requested storage changes only of bound claims"))
		case shrinksTooFar(o, n):
			errs = append(errs, forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"))
		}
	case *appsv1.ControllerRevision:
		if !Same(old.(*appsv1.ControllerRevision).Data, n.Data) {
			errs = append(errs, forbidden("data", "the data of a revision never change"))
		}
	default:
		spec = !Same(Member(old, "Spec"), Member(n, "Spec"))
		status = !Same(Member(old, "Status"), Member(n, "Status"))
		if spec && subresource != "" {
			errs = append(errs, forbidden("spec", "the spec cannot change through "+subresource))
		}
	}
	if status && subresource != "status" {
		errs = append(errs, forbidden("status", "the status changes through its subresource only"))
	}
	return spec, errs
}

// shrinksTooFar reports whether a claim asks for less than before and for no more than it has. One whose growth has
// failed may ask for less than that.
func shrinksTooFar(old, n *corev1.PersistentVolumeClaim) bool {
	was := old.Spec.Resources.Requests[corev1.ResourceStorage]
	is := n.Spec.Resources.Requests[corev1.ResourceStorage]
	return is.Cmp(was) < 0 && is.Cmp(old.Status.Capacity[corev1.ResourceStorage]) <= 0
}

func validateMetadata(subresource string, old, n action.Object) field.ErrorList {
	var errs field.ErrorList
	if old.GetUID() != n.GetUID() || old.GetName() != n.GetName() || !Same(old.GetDeletionTimestamp(), n.GetDeletionTimestamp()) {
		errs = append(errs, forbidden("metadata", "identity and deletion cannot change"))
	}
	owners := !Same(old.GetOwnerReferences(), n.GetOwnerReferences())
	finalizers := !Same(old.GetFinalizers(), n.GetFinalizers())
	if subresource != "" && (owners || finalizers) {
		errs = append(errs, forbidden("metadata", "only labels and annotations can change through "+subresource))
	}
	if subresource == "resize" && (!Same(old.GetLabels(), n.GetLabels()) || !Same(old.GetAnnotations(), n.GetAnnotations())) {
		errs = append(errs, forbidden("metadata", "nothing but resources can change through resize"))
	}
	return append(append(errs, validateFinalizers(old, n)...), validateOwners(n)...)
}

func validateFinalizers(old, n action.Object) field.ErrorList {
	var errs field.ErrorList
	for _, f := range n.GetFinalizers() {
		if old.GetDeletionTimestamp() != nil && !slices.Contains(old.GetFinalizers(), f) {
			errs = append(errs, forbidden("metadata.finalizers", "no new finalizers can be added while the object is being deleted"))
		}
	}
	return errs
}

func validateOwners(n action.Object) field.ErrorList {
	var errs field.ErrorList
	controllers := 0
	for _, ref := range n.GetOwnerReferences() {
		if ref.Controller != nil && *ref.Controller {
			controllers++
		}
		if ref.UID == "" || ref.Kind == "" || ref.Name == "" || ref.APIVersion == "" {
			errs = append(errs, forbidden("metadata.ownerReferences", "apiVersion, kind, name and uid are required"))
		}
	}
	if controllers > 1 {
		errs = append(errs, forbidden("metadata.ownerReferences", "only one reference can have controller set to true"))
	}
	return errs
}

// validatePodSpec returns an error for each change of the spec that a server rejects for an existing pod.
func validatePodSpec(subresource string, old, n *corev1.Pod) field.ErrorList {
	bare := n.Spec.DeepCopy()
	if len(bare.Containers) != len(old.Spec.Containers) || len(bare.InitContainers) != len(old.Spec.InitContainers) {
		return field.ErrorList{forbidden("spec.containers", "containers cannot be added or removed")}
	}
	var errs field.ErrorList
	switch subresource {
	case "":
		restoreImages(bare.Containers, old.Spec.Containers)
		restoreImages(bare.InitContainers, old.Spec.InitContainers)
		bare.ActiveDeadlineSeconds = old.Spec.ActiveDeadlineSeconds
		if len(bare.Tolerations) >= len(old.Spec.Tolerations) && Same(bare.Tolerations[:len(old.Spec.Tolerations)], old.Spec.Tolerations) {
			bare.Tolerations = old.Spec.Tolerations
		}
		for i := range n.Spec.Containers {
			if n.Spec.Containers[i].Image == "" {
				errs = append(errs, forbidden("spec.containers.image", "an image is required"))
			}
		}
	case "resize":
		before := podspec.LongRunning(&old.Spec)
		for i, c := range podspec.LongRunning(bare) {
			if !resizable(before[i].Resources, c.Resources) {
				errs = append(errs, forbidden("spec.containers.resources", "only cpu and memory can be set"))
			}
			c.Resources = before[i].Resources
		}
		if Quality(&old.Spec) != Quality(&n.Spec) {
			errs = append(errs, forbidden("spec", "the QoS class cannot change"))
		}
	}
	if subresource != "binding" && !Same(old.Spec, *bare) {
		errs = append(errs, forbidden("spec", "this part of a pod's spec cannot change"))
	}
	return errs
}

func restoreImages(containers, old []corev1.Container) {
	for i := range containers {
		containers[i].Image = old[i].Image
	}
}

// resizable reports whether the change only adds or changes quantities of cpu and memory.
func resizable(old, n corev1.ResourceRequirements) bool {
	only := func(have, want corev1.ResourceList) bool {
		for name := range have {
			if _, ok := want[name]; !ok {
				return false
			}
		}
		for name, q := range want {
			if was, ok := have[name]; (!ok || was.Cmp(q) != 0) && name != corev1.ResourceCPU && name != corev1.ResourceMemory {
				return false
			}
		}
		return true
	}
	return only(old.Limits, n.Limits) && only(old.Requests, n.Requests) && Same(old.Claims, n.Claims)
}

// Quality returns the QoS class that follows from cpu and memory of the containers and init containers.
func Quality(spec *corev1.PodSpec) corev1.PodQOSClass {
	guaranteed, any := true, false
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		r := &c.Resources
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, asks := r.Requests[name]
			limit, limits := r.Limits[name]
			any = any || asks && !request.IsZero() || limits && !limit.IsZero()
			guaranteed = guaranteed && limits && (!asks || request.Cmp(limit) == 0)
		}
	}
	switch {
	case !any:
		return corev1.PodQOSBestEffort
	case guaranteed:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// Member returns the field of the object with the name, or nil if there is none.
func Member(o action.Object, name string) any {
	f := reflect.ValueOf(o).Elem().FieldByName(name)
	if !f.IsValid() {
		return nil
	}
	return f.Interface()
}

// Same reports whether two values are equal in the way of the API.
func Same(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

func forbidden(path, text string) *field.Error { return field.Forbidden(field.NewPath(path), text) }

// fitsNode returns the server's refusal of a resize to more than a node has. What the pod has from its creation is no
// resize.
func (w *World) fitsNode(old, pod *corev1.Pod) error {
	before := podspec.LongRunning(&old.Spec)
	for i, c := range podspec.LongRunning(&pod.Spec) {
		if !Same(c.Resources, before[i].Resources) && w.isTooMuch(pod, c.Resources.Requests.Cpu(), before[i].Resources.Requests.Cpu()) {
			refused := apierrors.NewForbidden(ResourceOf(pod), pod.Name, fmt.Errorf("the node has less than container %s asks for", c.Name))
			refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: progress.NodeCapacityCause}}
			return refused
		}
	}
	return nil
}

// isTooMuch reports whether no node of the size of the pod's has its resources, or the cpu that a container of it asks for.
func (w *World) isTooMuch(pod *corev1.Pod, cpu, before *resource.Quantity) bool {
	if w.Options.Room != nil {
		return w.Options.Room(w, pod) == corev1.PodReasonInfeasible
	}
	return cpu.CmpInt64(NodeCPU) > 0 && cpu.Cmp(*before) > 0
}
